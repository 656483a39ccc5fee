// Package debconf implements debconf.set and debconf.set_file, which answer the questions that Debian packages
// ask during installation.
//
// The present answers are read from the files of debconf, without a process and without the package
// debconf-utils. debconf-set-selections sets all new answers in one call. It reads them from its standard
// input, so no command line contains a password. Passwords are redacted in reports.
package debconf

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

// Sources reads files of answers.
type Sources interface {
	// Script returns a file of the state tree, rendered if a template engine is named.
	Script(ctx context.Context, source, env, template string, vars *value.Map) ([]byte, error)
}

// Functions returns the functions of debconf.
func Functions(sources Sources) module.Table {
	return module.Table{
		"set":      func() module.Resource { return &set{} },
		"set_file": func() module.Resource { return &setFile{sources: sources} },
	}
}

// question is a question with its declared answer.
type question struct{ owner, name, kind, answer string }

// kinds returns the types of questions.
func kinds() []string {
	return []string{"string", "boolean", "select", "multiselect", "note", "text", "password", "title", "error"}
}

func (q question) Valid() error {
	if q.owner == "" || q.name == "" || strings.ContainsAny(q.owner+q.name, " \t\n") {
		return fmt.Errorf("%q is not a question of the package %q", q.name, q.owner)
	}
	if !slices.Contains(kinds(), q.kind) {
		return diag.Argument.Hint(fmt.Errorf("the question %s has the type %q", q.name, q.kind),
			"types are %s", strings.Join(kinds(), ", "))
	}
	if strings.Contains(q.answer, "\n") {
		return diag.Argument.Hint(fmt.Errorf("the answer to %s has a line break", q.name), "write it as \\n")
	}
	return nil
}

// line returns the line for debconf-set-selections.
func (q question) line() string {
	l := q.owner + " " + q.name + " " + q.kind
	if q.answer != "" {
		l += " " + q.answer
	}
	return l + "\n"
}

// shown returns the answer for a report.
func (q question) shown() string {
	if q.kind == "password" {
		return "(password hidden)"
	}
	return q.answer
}

// answers holds the questions whose answers differ, for both functions.
type answers struct{ other []question }

func (a *answers) check(h *host.Host, all []question) (module.Diff, error) {
	var problems []error
	for _, q := range all {
		problems = append(problems, q.Valid())
	}
	if err := errors.Join(problems...); err != nil {
		return module.Diff{}, err
	}
	db, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Changes: value.NewMap(), Planned: value.NewMap(), Comment: "debconf has these answers"}
	for _, q := range all {
		if !db.has(q) {
			a.other = append(a.other, q)
			d.Changes.Set(q.name, q.shown())
			d.Planned.Set(q.name, "New value: "+q.shown())
			d.Comment = "debconf would get other answers"
		}
	}
	return d, nil
}

func (a *answers) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	var input strings.Builder
	for _, q := range a.other {
		input.WriteString(q.line())
	}
	_, err := h.Tool(ctx, host.Tool{
		Argv: []string{"debconf-set-selections"}, Stdin: input.String(), Package: "debconf",
		Changes: host.Subject{Kind: host.KindFile, Name: "/var/cache/debconf/config.dat"},
	})
	if err != nil {
		return module.Report{}, host.Failed(diag.Setting, err, "answering debconf",
			"wait until no other program installs packages, which holds debconf's files")
	}
	return module.Report{Changes: d.Changes, Comment: "debconf has the answers"}, nil
}

// set implements debconf.set.
type set struct {
	Name string     `sls:"name"` // the package
	Data *value.Map `sls:"data,required"`
	answers
}

func (s *set) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	var all []question
	for key, v := range s.Data.All() {
		m, ok := v.(*value.Map)
		if !ok || !m.Has("type") || !m.Has("value") {
			return module.Diff{}, diag.Argument.Hint(fmt.Errorf("the answer to %s has no type and value", value.Str(key)),
				"write {type: boolean, value: true}")
		}
		q := question{owner: s.Name, name: value.Str(key), kind: value.Str(m.Value("type"))}
		q.answer = answer(q.kind, m.Value("value"))
		all = append(all, q)
	}
	return s.check(h, all)
}

// answer returns the answer in the form that debconf stores, without leading blanks.
func answer(kind string, v any) string {
	text := ""
	if v != nil {
		text = strings.TrimLeft(value.Str(v), " \t")
	}
	if kind != "boolean" {
		return text
	}
	switch strings.ToLower(text) {
	case "false", "no", "off", "0", "":
		return "false"
	}
	return "true"
}

// setFile implements debconf.set_file.
type setFile struct {
	Name     string     `sls:"name"`
	Source   string     `sls:"source,required"`
	Template string     `sls:"template"`
	Context  *value.Map `sls:"context"`
	Defaults *value.Map `sls:"defaults"`
	Env      string     `sls:"__env__"`
	answers

	sources Sources
}

func (s *setFile) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	vars := value.NewMap()
	vars.Update(s.Defaults)
	vars.Update(s.Context)
	data, err := s.sources.Script(ctx, s.Source, s.Env, s.Template, vars)
	if err != nil {
		return module.Diff{}, err
	}
	all, err := lines(string(data))
	if err != nil {
		return module.Diff{}, fmt.Errorf("%s: %w", s.Source, err)
	}
	return s.check(h, all)
}

// lines parses a file of answers: package, question, type and answer in each line.
func lines(text string) ([]question, error) {
	var all []question
	for i, l := range strings.Split(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		l = strings.TrimLeft(l, " \t")
		if l == "" || l[0] == '#' {
			continue
		}
		f := strings.Fields(l)
		if len(f) < 3 {
			return nil, diag.Argument.Hint(fmt.Errorf("line %d is not an answer", i+1),
				"a line has a package, a question, a type and an answer")
		}
		q := question{owner: f[0], name: f[1], kind: f[2]}
		for _, word := range f[:3] {
			l = strings.TrimLeft(l[len(word):], " \t")
		}
		q.answer = strings.TrimRight(l, "\r")
		all = append(all, q)
	}
	return all, nil
}
