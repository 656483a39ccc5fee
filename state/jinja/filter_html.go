package jinja

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/value"
)

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

var escapeFilter = onText(htmlEscapes.Replace)

var tag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<!--.*?-->|<.*?>`) })

var stripTagsFilter = onText(func(s string) string {
	return html.UnescapeString(strings.Join(value.Fields(tag().ReplaceAllString(s, ""), -1), " "))
})

var scriptEscapes = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`)

// EscapeScript makes JSON safe inside HTML, as tojson does.
func EscapeScript(json string) string { return scriptEscapes.Replace(json) }

func toJSONFilter(c *Call) (any, error) {
	indent, err := JSONIndent(c.Args[1])
	if err != nil {
		return nil, err
	}
	indent.SortKeys, indent.ASCII = true, true
	text, err := value.Dumps(c.Args[0], indent)
	return EscapeScript(text), err
}

// JSONIndent converts the indent argument of json.dumps to options: None, a number of spaces, or the text itself.
func JSONIndent(indent any) (value.JSONOptions, error) {
	switch v := indent.(type) {
	case nil:
		return value.JSONOptions{}, nil
	case string:
		return value.JSONOptions{Indent: v, Lines: true}, nil
	}
	n, err := value.AsIndex(indent)
	if err != nil {
		return value.JSONOptions{}, err
	}
	const widest = 1000
	return value.JSONOptions{Indent: strings.Repeat(" ", max(0, min(n, widest))), Lines: true}, nil
}

// quoteURL escapes all characters except letters, digits, _.-~ and the safe ones.
func quoteURL(s, safe string) string {
	quoted := strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	for _, c := range safe {
		quoted = strings.ReplaceAll(quoted, url.QueryEscape(string(c)), string(c))
	}
	return quoted
}

func urlEncodeFilter(c *Call) (any, error) {
	var pairs []any
	switch v := c.Args[0].(type) {
	case string:
		return quoteURL(v, "/"), nil
	case *value.Map:
		pairs = itemsOf(v).items()
	default:
		next, err := iterate(v)
		if next == nil && isKind(err, "TypeError") { // no collection: print it
			s, err := c.Str(0)
			return quoteURL(s, "/"), err
		}
		if pairs, err = c.Items(0); err != nil {
			return nil, err
		}
	}
	var parts []string
	for _, p := range pairs {
		kv, err := c.f.unpack(p, 2)
		if err != nil {
			return nil, err
		}
		var quoted [2]string
		for i := range kv {
			s, err := value.ToStr(kv[i])
			if err != nil {
				return nil, err
			}
			quoted[i] = strings.ReplaceAll(quoteURL(s, ""), "%20", "+")
		}
		parts = append(parts, quoted[0]+"="+quoted[1])
	}
	return strings.Join(parts, "&"), nil
}

func xmlAttrFilter(c *Call) (any, error) {
	m, err := c.mapping(0)
	if err != nil {
		return nil, err
	}
	space, err := c.Bool(1)
	if err != nil {
		return nil, err
	}
	var attrs []string
	for k, v := range m.All() {
		if v == nil || isUndefined(v) {
			continue
		}
		name, ok := k.(string)
		if !ok {
			return nil, typeError("expected string or bytes-like object, got '" + value.TypeName(k) + "'")
		}
		if strings.ContainsAny(name, " \t\n\r\f\v/>=") {
			return nil, value.Raise("ValueError", "Invalid character in attribute name: %s", value.Repr(name))
		}
		attrs = append(attrs, htmlEscapes.Replace(name)+`="`+htmlEscapes.Replace(value.Str(v))+`"`)
	}
	text := strings.Join(attrs, " ")
	if space && text != "" {
		text = " " + text
	}
	return text, nil
}

var (
	webAddress = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`(?i)^(?:https?://|www\.)?(?:(?:[\w%-]+\.)+)?(?:[a-z]{2,63}|xn--[\w%]{2,59}|[\w%-]{2,63}\.(?:com|net|int|edu|gov|` +
				`org|info|mil)|(?:(?:\d{1,3}\.){3}\d{1,3})|\[(?:[\da-f]{0,4}:){2,7}[\da-f]{0,4}\])(?::\d{1,5})?(?:[/?#]\S*)?$`)
	})
	mail      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\S+@\w[\w.-]*\.\w+$`) })
	wordOrGap = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s+|\S+`) })
)

func urlizeFilter(c *Call) (any, error) {
	s, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	u := urlizer{limit: -1}
	if c.Args[1] != nil {
		if u.limit, err = c.Int(1); err != nil {
			return nil, err
		}
	}
	rel := map[string]bool{"noopener": true}
	if nofollow, err := c.Bool(2); err != nil {
		return nil, err
	} else if nofollow {
		rel["nofollow"] = true
	}
	if target, ok := c.Args[3].(string); ok && target != "" {
		u.attrs = ` target="` + htmlEscapes.Replace(target) + `"`
	}
	given, _ := c.Args[4].(string)
	for _, r := range strings.Fields(given) {
		rel[r] = true
	}
	var rels []string
	for r := range rel {
		rels = append(rels, r)
	}
	slices.Sort(rels)
	u.attrs = ` rel="` + htmlEscapes.Replace(strings.Join(rels, " ")) + `"` + u.attrs
	if c.Args[5] != nil {
		if u.schemes, err = c.f.listOf(c.Args[5]); err != nil {
			return nil, err
		}
	}
	return wordOrGap().ReplaceAllStringFunc(htmlEscapes.Replace(s), u.link), nil
}

// urlizer converts addresses to links.
type urlizer struct {
	limit   int
	attrs   string
	schemes []any
}

func (u *urlizer) link(word string) string {
	head, middle, tail := trimPunctuation(word)
	switch lower := strings.ToLower(middle); {
	case strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "www."):
		if webAddress().MatchString(middle) {
			address := middle
			if strings.HasPrefix(lower, "www.") {
				address = "https://" + middle
			}
			return head + `<a href="` + address + `"` + u.attrs + `>` + u.shorten(middle) + `</a>` + tail
		}
	case strings.HasPrefix(lower, "mailto:") && mail().MatchString(middle[len("mailto:"):]):
		return head + `<a href="` + middle + `">` + middle[len("mailto:"):] + `</a>` + tail
	case strings.Contains(middle, "@") && !strings.Contains(middle, ":") && mail().MatchString(middle):
		return head + `<a href="mailto:` + middle + `">` + middle + `</a>` + tail
	}
	for _, s := range u.schemes {
		if scheme, ok := s.(string); ok && middle != scheme && strings.HasPrefix(middle, scheme) {
			return head + `<a href="` + middle + `"` + u.attrs + `>` + middle + `</a>` + tail
		}
	}
	return word
}

func (u *urlizer) shorten(text string) string {
	if r := []rune(text); u.limit >= 0 && len(r) > u.limit {
		return string(r[:u.limit]) + "..."
	}
	return text
}

// trimPunctuation splits brackets and full stops off a word.
func trimPunctuation(word string) (head, middle, tail string) {
	for changed := true; changed; {
		changed = false
		for _, p := range []string{"(", "<", "&lt;"} {
			if strings.HasPrefix(word, p) {
				head, word, changed = head+p, word[len(p):], true
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range []string{")", ">", ".", ",", "\n", "&gt;"} {
			if strings.HasSuffix(word, p) && !(p == ")" && strings.Count(word, "(") >= strings.Count(word, ")")) {
				word, tail, changed = strings.TrimSuffix(word, p), p+tail, true
			}
		}
	}
	return head, word, tail
}
