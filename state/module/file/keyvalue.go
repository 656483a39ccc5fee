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

// keyValue implements file.keyvalue: it sets the values of keys in a file.
type keyValue struct {
	pairs
	Name          string `sls:"name"`
	Key           any    `sls:"key"`
	Value         any    `sls:"value"`
	SearchOnly    any    `sls:"search_only"` // has no effect, as in Salt
	ShowChanges   bool   `sls:"show_changes"`
	IgnoreMissing bool   `sls:"ignore_if_missing"`

	family *family
	edit   edit
}

func newKeyValue(f *family) *keyValue {
	return &keyValue{pairs: pairs{Separator: "=", Count: 1}, ShowChanges: true, family: f}
}

func (k *keyValue) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	var d module.Diff
	switch {
	case k.Key != nil && k.Value != nil:
		if k.Values.Len() > 0 {
			d.Warnings = []string{"key_values has no effect beside key and value"}
		}
		k.Values = value.NewMap(value.Str(k.Key), k.Value)
	case k.Values.Len() == 0:
		return d, diag.Argument.Hint(errors.New("there is no key to look for"), "give key and value, or key_values")
	}
	var err error
	k.edit, err = k.family.openEdit(h, k.Name)
	if errors.Is(err, errMissing) && k.IgnoreMissing {
		return module.Diff{Comment: k.Name + " does not exist, and need not be"}, nil
	}
	if err != nil {
		return d, err
	}
	after, diff := k.pairs.apply(lines(string(k.edit.before)))
	found := k.edit.diff(nil, after, false)
	found.Warnings = d.Warnings
	if found.Empty() {
		return found, nil
	}
	text := hiddenDiff
	if k.ShowChanges {
		text = k.family.seen(bounded(diff))
	}
	if k.ShowChanges && k.edit.by.private() {
		text = withheldText(diff)
	}
	found.Changes = value.NewMap("diff", text)
	return found, nil
}

func (k *keyValue) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return k.edit.apply(ctx, h, d, "")
}

// pairs holds the wanted keys and values and their notation.
type pairs struct {
	Values          *value.Map `sls:"key_values"`
	Separator       string     `sls:"separator"`
	Append          bool       `sls:"append_if_not_found"`
	Prepend         bool       `sls:"prepend_if_not_found"`
	Count           int        `sls:"count"` // how many lines of a key to change; 0 for none, negative for all
	Uncomment       *string    `sls:"uncomment"`
	KeyIgnoreCase   bool       `sls:"key_ignore_case"`
	ValueIgnoreCase bool       `sls:"value_ignore_case"`
}

// apply returns the new lines and a description of the changes in the form that Salt uses for file.keyvalue.
func (p *pairs) apply(before []string) (after []string, diff string) {
	w := &pairWalk{pairs: p, left: map[string]int{}}
	for key := range p.Values.All() {
		w.left[value.Str(key)] = p.Count
	}
	for _, line := range before {
		after = append(after, w.line(line))
	}
	return p.complete(after, w.missing(), w.diff.String())
}

// complete adds the lines of missing keys to the lines and to the description of the changes, if append_if_not_found or
// prepend_if_not_found is set.
func (p *pairs) complete(after, missing []string, diff string) ([]string, string) {
	switch {
	case len(missing) == 0:
	case p.Append:
		if last := len(after) - 1; last >= 0 && after[last] != "" && ending(after[last]) == "" {
			after[last] += "\n"
		}
		after = append(after, missing...)
		diff += "- <EOF>\n" + strings.Join(signed(nil, "+ ", missing), "") + "+ <EOF>\n"
	case p.Prepend:
		slices.Reverse(missing)
		after = append(missing, after...)
		diff = "  <SOF>\n" + strings.Join(signed(nil, "+ ", missing), "") + diff
	}
	return after, diff
}

// pairWalk processes the lines of a file one by one.
type pairWalk struct {
	*pairs
	left map[string]int // how many lines of a key may still be changed
	diff strings.Builder
}

// missing returns lines for the keys that were not found.
func (w *pairWalk) missing() (lines []string) {
	for key, v := range w.Values.All() {
		if w.left[value.Str(key)] > 0 {
			lines = append(lines, value.Str(key)+w.Separator+value.Str(v)+"\n")
		}
	}
	return lines
}

// line returns the new text of a line.
func (w *pairWalk) line(line string) string {
	for key, v := range w.Values.All() {
		line = w.pair(line, value.Str(key), v)
	}
	return line
}

func (w *pairWalk) pair(line, key string, v any) string {
	plain := w.uncommented(line)
	commented := len(plain) < len(line)
	lineKey, lineValue, ok := strings.Cut(plain, w.Separator)
	if !ok || !w.same(lineKey, key, w.KeyIgnoreCase) {
		return line
	}
	matches := w.same(value.Strip(lineValue), value.Strip(value.Str(v)), w.ValueIgnoreCase)
	left := w.left[key]
	if left > 0 {
		w.left[key]--
	}
	// A commented line is uncommented only while the count allows it. An active line beyond the count is removed.
	if commented && left <= 0 || !commented && left != 0 && matches {
		return line
	}
	fmt.Fprintf(&w.diff, "- %s", line)
	if left == 0 {
		return ""
	}
	changed := lineKey + w.Separator + value.Str(v)
	if _, isText := v.(string); isText {
		fmt.Fprintf(&w.diff, "+ %s\n", changed)
	} else {
		fmt.Fprintf(&w.diff, "+ %s (from %s type)\n", value.StripRight(changed), value.TypeName(v))
	}
	return changed + "\n"
}

func (w *pairWalk) uncommented(line string) string {
	if w.Uncomment == nil {
		return value.StripLeft(line)
	}
	return strings.TrimLeft(line, *w.Uncomment)
}

func (w *pairWalk) same(a, b string, ignoreCase bool) bool {
	if ignoreCase {
		return strings.EqualFold(a, b)
	}
	return a == b
}
