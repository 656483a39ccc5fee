package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// configured holds the arguments of the states for git's configuration.
type configured struct {
	Name           string `sls:"name"`
	Repo           string `sls:"repo"`
	User           string `sls:"user"`
	Password       any    `sls:"password"`
	Global         bool   `sls:"global"`
	OutputEncoding any    `sls:"output_encoding"`
}

func (c *configured) access() access { return access{User: c.User} }

// args returns the arguments of `git config` for the configuration of the state.
func (c *configured) args(more ...string) []string {
	if c.Global {
		return append([]string{"config", "--global"}, more...)
	}
	return in(c.Repo, append([]string{"config", "--local"}, more...)...)
}

func (c *configured) Valid() error {
	if !c.Global && c.Repo == "" {
		return diag.Argument.Hint(
			errors.New("neither repo nor global is set"), "name the repository in repo, or set global: True")
	}
	return nil
}

// awaits returns the missing prerequisite of the state, or "". It sets the user as whom git runs.
func (c *configured) awaits(h *host.Host) (string, error) {
	if as := c.access(); !c.Global {
		if err := as.actFor(h, c.Repo); err != nil {
			return "", err
		}
		c.User = as.User
	}
	what, err := c.access().awaits(h)
	if err != nil || what != "" || c.Global {
		return what, err
	}
	at, err := placeOf(h, c.Repo)
	if err == nil && at != checkout {
		what = "the repository " + c.Repo
	}
	return what, err
}

// values returns the values of all keys that match a regular expression, by key. git prints keys in lower case.
func (c *configured) values(ctx context.Context, h *host.Host, expression string) (*value.Map, error) {
	out, err := c.access().git().Ask(ctx, h, c.args("--null", "--get-regexp", expression)...)
	found := value.NewMap()
	if program.EndedWith(err, 1) {
		return found, nil
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		key, v, _ := strings.Cut(entry, "\n")
		if key == "" {
			continue
		}
		list, ok := found.Value(key).(*value.List)
		if !ok {
			list = value.NewList()
			found.Set(key, list)
		}
		list.Append(v)
	}
	return found, err
}

// one returns the values of a single key.
func (c *configured) one(ctx context.Context, h *host.Host) ([]string, error) {
	out, err := c.access().git().Ask(ctx, h, c.args("--null", "--get-all", c.Name)...)
	if program.EndedWith(err, 1) || err == nil && out == "" {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), err
}

// former stands for n values that git had, in reports; nil for none. Such a value may be a token, a header or a URL
// with a password that is not in the pillar any more, so no redactor finds it.
func former(n int) any {
	if n == 0 {
		return nil
	}
	return value.Strings(slices.Repeat([]string{"<not shown>"}, n)...)
}

// configSet implements git.config_set.
type configSet struct {
	configured
	Value    *string `sls:"value"`
	Multivar any     `sls:"multivar"`

	want []string
}

func (c *configSet) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := c.read(); err != nil {
		return module.Diff{}, err
	}
	if what, err := c.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "set "+c.Name), err
	}
	have, err := c.one(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if slices.Equal(have, c.want) {
		return module.Diff{Comment: c.Name + " is set as declared"}, nil
	}
	return module.Diff{Changes: value.NewMap(c.Name, value.NewMap("old", former(len(have)), "new",
		value.Strings(c.want...))), Comment: "would set " + c.Name}, nil
}

// read sets the wanted values from the arguments.
func (c *configSet) read() error {
	switch v := c.Multivar.(type) {
	case nil:
		if c.Value == nil {
			return diag.Argument.Hint(errors.New("neither value nor multivar is set"), "write `- value: ...`")
		}
		c.want = []string{*c.Value}
	case *value.List:
		for _, item := range v.Items {
			c.want = append(c.want, value.Str(item))
		}
	default:
		c.want = strings.Split(value.Str(v), ",")
	}
	if c.Value != nil && c.Multivar != nil {
		return diag.Argument.Hint(errors.New("both value and multivar are set"), "keep one of them")
	}
	return c.Valid()
}

func (c *configSet) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if what, err := c.awaits(h); err != nil || what != "" {
		err = c.access().absent(what, err)
		if at, unread := placeOf(h, c.Repo); unread == nil && at == occupied {
			err = takenBy(h, c.Repo, err)
		}
		return module.Report{}, err
	}
	have, err := c.one(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if err := c.write(ctx, h); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: value.NewMap(c.Name, value.NewMap("old", former(len(have)), "new",
		value.Strings(c.want...))),
		Comment: "set " + c.Name}, nil
}

// write sets the values. Since every user can read the arguments of a program, it first sets placeholders. git then
// starts an editor that replaces them by the values in its environment.
func (c *configSet) write(ctx context.Context, h *host.Host) error {
	edit := c.access().git()
	script, mark := `f() { umask 077; t=$(cat "$1") || return; `, rand.Text()
	for i, v := range c.want {
		name, placeholder := fmt.Sprintf("CORPUS_GIT_VALUE_%d", i), fmt.Sprintf("%s-%d-", mark, i)
		verb := "--add"
		if i == 0 {
			verb = "--replace-all"
		}
		if _, err := c.access().git().Do(ctx, h, c.args(verb, c.Name, placeholder)...); err != nil {
			return err
		}
		edit.Env = append(edit.Env, name+"="+quotedValue(v))
		script += fmt.Sprintf(`t="${t%%%%%s*}$%s${t#*%s}"; `, placeholder, name, placeholder)
	}
	// The second copy keeps the owner, the mode and the links of the file.
	edit.Env = append(edit.Env, "GIT_EDITOR="+script+`cat >"$1.corpus" <<END && cat "$1.corpus" >"$1"`+
		"\n$t\nEND\nr=$?; rm -f \"$1.corpus\"; return $r\n}; f")
	_, err := edit.Do(ctx, h, c.args("--edit")...)
	return err
}

// quotedValue returns a value in the notation of git's configuration files.
func quotedValue(v string) string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(v)
	if strings.ContainsAny(v, ";#\r") || strings.Trim(v, " ") != v {
		return `"` + text + `"`
	}
	return text
}

// configUnset implements git.config_unset. The name is a regular expression.
type configUnset struct {
	configured
	ValueRegex string `sls:"value_regex"`
	All        bool   `sls:"all"`
}

func (c *configUnset) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := c.Valid(); err != nil {
		return module.Diff{}, err
	}
	if what, err := c.awaits(h); err != nil || what != "" {
		if what != "" && err == nil {
			return module.Diff{Comment: what + " does not exist, so nothing is set"}, nil
		}
		return module.Diff{}, err
	}
	matches, err := c.matches(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	for key, v := range matches.All() {
		list := v.(*value.List)
		if list.Len() > 1 && !c.All {
			return module.Diff{}, diag.Git.Hint(fmt.Errorf("%s has %d values", value.Str(key), list.Len()),
				"set all: True to remove all of them; to see them: git config --get-all %s", value.Str(key))
		}
		changes.Set(value.Str(key), former(list.Len()))
	}
	if matches.Len() == 0 {
		return module.Diff{Comment: "nothing is set that matches " + c.Name}, nil
	}
	return module.Diff{Changes: changes, Comment: "would unset " + strings.Join(changes.Names(), ", ")}, nil
}

// matches returns the values to remove, by key.
func (c *configUnset) matches(ctx context.Context, h *host.Host) (*value.Map, error) {
	all, err := c.values(ctx, h, "^"+strings.TrimSuffix(strings.TrimPrefix(c.Name, "^"), "$")+"$")
	if err != nil || c.ValueRegex == "" {
		return all, err
	}
	expression, err := regexp.Compile(c.ValueRegex)
	if err != nil {
		return nil, fmt.Errorf("value_regex: %w", err)
	}
	some := value.NewMap()
	for key, v := range all.All() {
		list := value.NewList()
		for _, item := range v.(*value.List).Items {
			if expression.MatchString(value.Str(item)) {
				list.Append(item)
			}
		}
		if list.Len() > 0 {
			some.Set(value.Str(key), list)
		}
	}
	return some, nil
}

func (c *configUnset) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for _, key := range d.Changes.Names() {
		args := []string{"--unset-all", key}
		if c.ValueRegex != "" {
			args = append(args, c.ValueRegex)
		}
		if _, err := c.access().git().Do(ctx, h, c.args(args...)...); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "unset " + strings.Join(d.Changes.Names(), ", ")}, nil
}
