package iptables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// rule converts the arguments of a state to those of iptables, in the order that iptables requires: interfaces,
// protocol, matches with their options, the target, and the options of the target.
type rule struct {
	args  *value.Map
	words []string
}

// build returns the arguments of iptables for a rule.
func build(args *value.Map) ([]string, error) {
	r := &rule{args: value.NewMap()}
	r.args.Update(args)
	if target, ok := r.args.Get("target"); ok {
		r.args.Delete("target")
		r.args.Set("jump", target)
	}
	r.option("if", "-i")
	r.option("of", "-o")
	if _, ok := r.args.Get("proto"); ok && r.text("match") != "policy" {
		r.option("proto", "-p")
	}
	r.option("protocol", "-p")
	hasProtocol := slices.Contains(r.words, "-p")
	r.matches()
	if r.args.Has("connstate") {
		r.module("state")
		r.option("connstate", "--state")
	}
	r.option("dport", "--dport")
	r.option("sport", "--sport")
	for _, name := range []string{"dports", "sports"} {
		if err := r.ports(name, hasProtocol); err != nil {
			return nil, err
		}
	}
	if v, ok := r.take("comment"); ok {
		r.module("comment")
		r.words = append(r.words, "--comment", value.Str(v))
	}
	r.option("set", "--match-set")
	jump := r.jump()
	for _, name := range r.args.Names() {
		flag := "--" + name
		if len(name) == 1 {
			flag = "-" + name
		}
		r.option(name, flag)
	}
	return append(r.words, jump...), nil
}

func (r *rule) take(name string) (any, bool) {
	v, ok := r.args.Get(name)
	r.args.Delete(name)
	return v, ok
}

func (r *rule) text(name string) string {
	if v, ok := r.args.Get(name); ok && v != nil {
		return value.Str(v)
	}
	return ""
}

// option adds an option with its value. A negated value puts an exclamation mark before the option.
func (r *rule) option(name, flag string) {
	v, ok := r.take(name)
	if !ok {
		return
	}
	text := ""
	if v != nil {
		text = value.Str(v)
	}
	text, negated := negation(text)
	if negated {
		r.words = append(r.words, "!")
	}
	r.words = append(append(r.words, flag), split(text)...)
}

func negation(text string) (string, bool) {
	for _, not := range []string{"!", "not "} {
		if rest, ok := strings.CutPrefix(text, not); ok {
			return strings.TrimLeft(rest, " "), true
		}
	}
	return text, false
}

// module adds a match module unless it is already loaded.
func (r *rule) module(name string) {
	for i := 1; i < len(r.words); i++ {
		if r.words[i-1] == "-m" && r.words[i] == name {
			return
		}
	}
	r.words = append(r.words, "-m", name)
}

// list returns the items of a list, or a text as a list, split at separator unless that is "".
func list(v any, separator string) []string {
	l, ok := v.(*value.List)
	if !ok {
		if separator == "" {
			return []string{value.Str(v)}
		}
		return strings.Split(value.Str(v), separator)
	}
	texts := make([]string, 0, l.Len())
	for _, item := range l.Items {
		texts = append(texts, value.Str(item))
	}
	return texts
}

// matches adds the declared match modules and sets.
func (r *rule) matches() {
	if v, ok := r.take("match"); ok {
		for _, m := range list(v, ",") {
			r.words = append(append(r.words, "-m"), split(m)...)
			if slices.Contains([]string{"pknock", "quota2", "recent"}, strings.TrimSpace(m)) {
				r.option("name_", "--name")
			}
		}
		r.option("proto", "--proto")
	}
	if v, ok := r.take("match-set"); ok {
		for _, set := range list(v, "") {
			set, negated := negation(set)
			r.words = append(r.words, "-m", "set")
			if negated {
				r.words = append(r.words, "!")
			}
			r.words = append(append(r.words, "--match-set"), split(set)...)
		}
	}
}

// ports adds a list of ports, which requires a protocol.
func (r *rule) ports(name string, hasProtocol bool) error {
	v, ok := r.take(name)
	if !ok {
		return nil
	}
	if !hasProtocol {
		return diag.Argument.Hint(fmt.Errorf("%s has no effect without a protocol", name), "add `- proto: tcp`")
	}
	r.module("multiport")
	ports := list(v, "")
	negated := false
	for i, p := range ports {
		bare, not := negation(p)
		ports[i], negated = bare, negated || not
	}
	if negated {
		r.words = append(r.words, "!")
	}
	r.words = append(r.words, "--"+name, strings.Join(ports, ","))
	return nil
}

// jump returns the target and its options.
func (r *rule) jump() []string {
	var words []string
	for _, name := range afterJump() {
		v, ok := r.take(name)
		if !ok {
			continue
		}
		words = append(words, map[bool]string{true: "-", false: "--"}[len(name) == 1]+name)
		if v != nil && v != "" {
			words = append(words, value.Str(v))
		}
	}
	return words
}

// split splits a text into words like a shell with quotes.
func split(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	inside := false
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if inside {
				words = append(words, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words
}

// afterJump returns the arguments that are options of targets, beginning with the target itself.
func afterJump() []string {
	return strings.Fields(`
		j jump add-set and-mark and-tos checksum-fill clamp-mss-to-pmtu clustermac ctevents ctmask del-set
		ecn-tcp-remove exist expevents gateway hash-init hashmode helper label local-node log-ip-options
		log-level log-prefix log-tcp-options log-tcp-sequence log-uid mask new nfmask nflog-group
		nflog-prefix nflog-range nflog-threshold nodst notrack on-ip on-port or-mark or-tos persistent
		queue-balance queue-bypass queue-num random rateest-ewmalog rateest-interval rateest-name
		reject-with restore restore-mark save-mark selctx set-class set-dscp set-dscp-class set-mark set-mss
		set-tos set-xmark strip-options timeout to to-destination to-ports to-source total-nodes tproxy-mark
		ttl-dec ttl-inc ttl-set type ulog-cprange ulog-nlgroup ulog-prefix ulog-qthreshold xor-mark xor-tos
		zone dst-pfx hl-dec hl-inc hl-set hmark-dport-mask hmark-dst-prefix hmark-mod hmark-offset
		hmark-proto-mask hmark-rnd hmark-spi-mask hmark-sport-mask hmark-src-prefix hmark-tuple
		led-always-blink led-delay led-trigger-id queue-cpu-fanout src-pfx to-port addr and-mask delude
		honeypot or-mask prefix reset reuse set-mac shift static tarpit tname ttl`)
}
