package file

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// addition implements file.append and file.prepend: it adds text to the end or the start of a file that does
// not contain it.
type addition struct {
	textual
	Name             string `sls:"name"`
	Text             any    `sls:"text"`
	MakeDirs         bool   `sls:"makedirs"`
	IgnoreWhitespace bool   `sls:"ignore_whitespace"` // file.append only
	Header           bool   `sls:"header"`            // file.prepend only: the text must be at the start

	prepend bool
	family  *family
	edit    edit
	made    bool
}

func newAddition(f *family, prepend bool) *addition {
	return &addition{textual: textual{templated: templated{Template: "jinja"}}, IgnoreWhitespace: true,
		prepend: prepend, family: f}
}

func (a *addition) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var err error
	a.edit, err = a.family.openEdit(h, a.Name)
	if errors.Is(err, errMissing) {
		a.made, err = true, nil
	}
	if err != nil {
		return module.Diff{}, err
	}
	chunks, err := a.chunks(ctx)
	if err != nil {
		return module.Diff{}, err
	}
	added, err := a.missing(chunks)
	if err != nil {
		return module.Diff{}, err
	}
	if a.made {
		return a.checkNew(h, added), nil
	}
	if len(added) == 0 {
		return module.Diff{Comment: a.edit.name + " is as it should be"}, nil
	}
	return module.Diff{Changes: value.NewMap("diff", a.diff(added)), Comment: "would edit " + a.edit.name}, nil
}

// chunks returns the texts that the file must contain.
func (a *addition) chunks(ctx context.Context) ([]string, error) {
	chunks, err := a.textual.texts(ctx, a.family, a.edit.name)
	if err != nil || chunks != nil {
		return chunks, err
	}
	if a.Text == nil {
		return nil, diag.Argument.Hint(errors.New("there is no text"), "give text or source")
	}
	return parts(a.Text), nil
}

// missing returns the lines that the file lacks and sets a.edit.after to the content with them.
func (a *addition) missing(chunks []string) ([]string, error) {
	var added []string
	for _, chunk := range chunks {
		there, err := a.has(chunk)
		if err != nil {
			return nil, err
		}
		if !there {
			added = append(added, value.SplitLines(chunk, false)...)
		}
	}
	if a.prepend && a.Header && startsWithLines(value.SplitLines(string(a.edit.before), false), added) {
		added = nil
	}
	a.edit.after = a.joined(strings.Join(signedEnd(added), ""))
	return added, nil
}

// joined returns the text of the file with the additions.
func (a *addition) joined(text string) []byte {
	before := string(a.edit.before)
	switch {
	case a.prepend:
		return []byte(text + before)
	case before != "" && !strings.HasSuffix(before, "\n") && text != "":
		return []byte(before + "\n" + text)
	}
	return []byte(before + text)
}

// signedEnd returns the lines with a newline appended to each.
func signedEnd(list []string) []string {
	out := make([]string, len(list))
	for i, l := range list {
		out[i] = l + "\n"
	}
	return out
}

func startsWithLines(all, start []string) bool {
	if len(all) < len(start) {
		return false
	}
	for i, l := range start {
		if all[i] != l {
			return false
		}
	}
	return true
}

// has reports whether the file already contains a text.
func (a *addition) has(chunk string) (bool, error) {
	switch {
	case a.prepend && a.Header:
		return false, nil
	case !a.prepend && !a.IgnoreWhitespace:
		return strings.Contains(string(a.edit.before), chunk), nil
	}
	r, err := value.CompileRegexp(anyWhitespace(chunk), value.RegexpFlags{Multiline: true})
	if err != nil {
		return false, err
	}
	m, err := r.Search(string(a.edit.before))
	return m != nil, err
}

// diff describes the added lines in Salt's form: for file.append, Salt compares the lines without their line
// ends.
func (a *addition) diff(added []string) string {
	if !isText(a.edit.before) {
		return "Replace binary file"
	}
	old := string(a.edit.before)
	if a.prepend {
		lines := value.SplitLines(old, true)
		return a.family.unified(a.edit.by, readableAll(lines), append(signedEnd(added), readableAll(lines)...), "")
	}
	lines := readableAll(value.SplitLines(old, false))
	return a.family.unified(a.edit.by, lines, append(lines[:len(lines):len(lines)], added...), "\n")
}

func (a *addition) checkNew(h *host.Host, added []string) module.Diff {
	d := module.Diff{Changes: value.NewMap("new", a.Name), Planned: value.NewMap("new", a.Name),
		Comment: "would make " + a.Name}
	if len(added) > 0 {
		d.Changes = value.NewMap("diff", a.diff(added))
	}
	if !a.MakeDirs && !isDir(h, path.Dir(a.edit.name)) {
		d.Missing = append(d.Missing, noParent(h, a.edit.name))
	}
	return d
}

func (a *addition) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if a.made {
		a.edit.target = a.edit.name
		if !isDir(h, path.Dir(a.edit.name)) {
			if !a.MakeDirs {
				return module.Report{}, noParent(h, a.edit.name)
			}
			if err := parents(h, a.edit.name, unchanged()); err != nil {
				return module.Report{}, err
			}
		}
	}
	return a.edit.apply(ctx, h, d, "")
}
