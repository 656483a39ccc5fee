package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// replace implements file.replace: it replaces all matches of a pattern in a file.
type replace struct {
	Name             string `sls:"name"`
	Pattern          string `sls:"pattern,required"`
	Repl             any    `sls:"repl,required"`
	Count            int    `sls:"count"`
	Flags            any    `sls:"flags"`
	BufSize          any    `sls:"bufsize"` // no effect: the whole file is read at once
	Append           bool   `sls:"append_if_not_found"`
	Prepend          bool   `sls:"prepend_if_not_found"`
	NotFoundContent  any    `sls:"not_found_content"`
	Backup           any    `sls:"backup"`
	ShowChanges      bool   `sls:"show_changes"`
	IgnoreMissing    bool   `sls:"ignore_if_missing"`
	BackslashLiteral bool   `sls:"backslash_literal"`

	family *family
	edit   edit
}

func newReplace(f *family) *replace {
	return &replace{Flags: 8, Backup: ".bak", ShowChanges: true, family: f}
}

func (r *replace) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if r.Append && r.Prepend {
		return module.Diff{}, diag.Contradiction.Hint(
			errors.New("append_if_not_found and prepend_if_not_found contradict each other"),
			"keep one of them")
	}
	var err error
	r.edit, err = r.family.openEdit(h, r.Name)
	if errors.Is(err, errMissing) && r.IgnoreMissing {
		return module.Diff{Comment: r.Name + " does not exist, and need not be"}, nil
	}
	if err = errors.Join(err, r.edit.asText()); err != nil {
		return module.Diff{}, err
	}
	flags, err := regexpFlags(r.Flags)
	if err != nil {
		return module.Diff{}, err
	}
	pattern, err := compileRegexp("pattern", r.Pattern, flags)
	if err != nil {
		return module.Diff{}, err
	}
	after, err := r.replaced(pattern, flags)
	if err != nil {
		return module.Diff{}, fmt.Errorf("replacing %s in %s: %w", r.Pattern, r.edit.name, err)
	}
	return r.edit.diff(readableAll(lines(string(r.edit.before))), after, r.ShowChanges), nil
}

// replaced returns the lines of the file after the replacement. If nothing matches, append_if_not_found and
// prepend_if_not_found add a line.
func (r *replace) replaced(pattern *value.Regexp, flags value.RegexpFlags) ([]string, error) {
	text, repl := string(r.edit.before), value.Str(r.Repl)
	template := repl
	if r.BackslashLiteral {
		template = strings.ReplaceAll(repl, `\`, `\\`)
	}
	text, n, err := pattern.ReplaceSome(text, template, max(0, r.Count))
	if err != nil {
		return nil, r.blame(pattern, err)
	}
	after := lines(text)
	if n > 0 || !r.Append && !r.Prepend {
		return after, nil
	}
	content := repl
	if r.NotFoundContent != nil {
		content = value.Str(r.NotFoundContent)
	}
	there, err := hasLine(text, content, flags)
	switch {
	case err != nil || there:
		return after, err
	case r.Prepend:
		return append([]string{content + "\n"}, after...), nil
	}
	if last := len(after) - 1; last >= 0 && !strings.HasSuffix(after[last], "\n") {
		after[last] += "\n"
	}
	return append(after, content+"\n"), nil
}

// blame marks an error of the replacement as one of the file if the search alone fails on its text.
func (r *replace) blame(pattern *value.Regexp, err error) error {
	if _, slow := pattern.FindAll(string(r.edit.before)); slow != nil {
		return host.Unsuitable(r.edit.name, err)
	}
	return err
}

// hasLine reports whether text contains a line, where the flags of the pattern define what a line is.
func hasLine(text, line string, flags value.RegexpFlags) (bool, error) {
	whole, err := value.CompileRegexp(`^`+value.EscapeRegexp(line)+`(?:$|(?=\r\n))`, flags)
	if err != nil {
		return false, err
	}
	m, err := whole.Search(text)
	return m != nil, err
}

// regexpFlags parses the flags argument: a list of names, or the sum of the numbers of Python's flags.
func regexpFlags(v any) (value.RegexpFlags, error) {
	if n, ok := v.(int); ok {
		if n&^(2|8|16|32|256) != 0 {
			return value.RegexpFlags{}, unknownFlag(v)
		}
		return value.RegexpFlags{IgnoreCase: n&2 != 0, Multiline: n&8 != 0, DotAll: n&16 != 0}, nil
	}
	var flags value.RegexpFlags
	for _, name := range parts(v) {
		switch strings.ToUpper(name) {
		case "I", "IGNORECASE":
			flags.IgnoreCase = true
		case "M", "MULTILINE":
			flags.Multiline = true
		case "S", "DOTALL":
			flags.DotAll = true
		case "U", "UNICODE", "A", "ASCII":
		default:
			return flags, unknownFlag(name)
		}
	}
	return flags, nil
}

func unknownFlag(v any) error {
	return diag.Argument.Hint(
		fmt.Errorf("flags cannot be %s", value.Str(v)), "they can be IGNORECASE, MULTILINE and DOTALL")
}

// readableAll returns the lines as UTF-8; see linesOf.
func readableAll(lines []string) []string {
	if !slices.ContainsFunc(lines, func(l string) bool { return !validText(l) }) {
		return lines
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = readable([]byte(l))
	}
	return out
}

func (r *replace) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return r.edit.apply(ctx, h, d, suffix(r.Backup))
}
