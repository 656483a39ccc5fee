// Package ini implements ini.options_present and the other ini states, which manage options in files with
// sections and key = value lines.
//
// Only the lines of the changed options are rewritten: comments, order, blank lines and the format of other
// options are preserved. All changes of a state are made in a single write.
package ini

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of ini.
func Functions() module.Table {
	return module.Table{
		"options_present":  func() module.Resource { return &optionsPresent{edit: edit{Separator: "="}} },
		"options_absent":   func() module.Resource { return &optionsAbsent{edit: edit{Separator: "="}} },
		"sections_present": func() module.Resource { return &sectionsPresent{edit: edit{Separator: "="}} },
		"sections_absent":  func() module.Resource { return &sectionsAbsent{edit: edit{Separator: "="}} },
	}
}

// edit holds the arguments that the functions have in common, and the new text, which Check computes and Apply writes.
type edit struct {
	Name      string `sls:"name"`
	Separator string `sls:"separator"`

	text    string
	private bool // not every user may read the file, so the values that it had are not shown
}

// read parses the file, which is empty if it does not exist.
func (e *edit) read(h *host.Host) (*document, error) {
	if !path.IsAbs(e.Name) {
		return nil, diag.Argument.Hint(fmt.Errorf("%q is not an absolute path", e.Name), "start it with a slash")
	}
	if e.Separator == "" {
		return nil, errors.New("separator is empty")
	}
	e.private = host.Private(h, e.Name)
	data, err := h.Files.ReadFile(e.Name)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	return parse(string(data), e.Separator), err
}

// former returns a value that the file had, for the report. The value may be a secret of an earlier release, which no
// redactor can find.
func (e *edit) former(v any) any {
	if e.private {
		return "<not shown, since not every user may read the file>"
	}
	return v
}

// diff returns the diff after an edit of the document.
func (e *edit) diff(d *document, changes *value.Map) module.Diff {
	if changes.Len() == 0 {
		return module.Diff{Comment: e.Name + " is as declared"}
	}
	e.text = d.String()
	return module.Diff{Changes: changes, Comment: "would change " + e.Name}
}

func (e *edit) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	err := h.Files.Write(e.Name, host.NewFile{Content: strings.NewReader(e.text), UID: -1, GID: -1})
	if errors.Is(err, fs.ErrNotExist) {
		err = diag.Prerequisite.Hint(err, "make the directory %s, in a file.directory state that this one requires",
			path.Dir(e.Name))
	}
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "changed " + e.Name}, nil
}

// optionsPresent implements ini.options_present.
type optionsPresent struct {
	edit
	Sections *value.Map `sls:"sections"`
	Strict   bool       `sls:"strict"` // remove options that are not declared
}

func (o *optionsPresent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	d, err := o.read(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes, top := value.NewMap(), value.NewMap()
	for key, v := range o.Sections.All() {
		if _, isSection := v.(*value.Map); !isSection {
			top.Set(value.Str(key), v)
		}
	}
	if o.Sections != nil {
		changes.Update(o.section(d, "", top))
	}
	for key, v := range o.Sections.All() {
		body, isSection := v.(*value.Map)
		if !isSection {
			continue
		}
		name := value.Str(key)
		if made := !d.has(name); made {
			d.add(name)
		}
		if c := o.section(d, name, body); c.Len() > 0 {
			changes.Set(name, c)
		}
	}
	return o.diff(d, changes), nil
}

// section sets the options of a section and, if strict is set, removes all others. It returns the changes.
func (o *optionsPresent) section(d *document, name string, options *value.Map) *value.Map {
	changes := value.NewMap()
	for _, key := range d.keys(name) {
		if o.Strict && !options.Has(key) {
			before, _ := d.remove(name, key)
			changes.Set(key, value.NewMap("before", o.former(before), "after", nil))
		}
	}
	for key, v := range options.All() {
		option, want := value.Str(key), value.Str(v)
		before, ok := d.get(name, option)
		if ok && before == want {
			continue
		}
		change := value.NewMap("before", nil, "after", want)
		if ok {
			change.Set("before", o.former(before))
		}
		d.set(name, option, want)
		changes.Set(option, change)
	}
	return changes
}

// optionsAbsent implements ini.options_absent.
type optionsAbsent struct {
	edit
	Sections *value.Map `sls:"sections"`
}

func (o *optionsAbsent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	d, err := o.read(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	for key, v := range o.Sections.All() {
		name := value.Str(key)
		list, isList := v.(*value.List)
		if !isList { // an option above all sections
			if before, ok := d.remove("", name); ok {
				changes.Set(name, o.former(before))
			}
			continue
		}
		if gone := o.removeAll(d, name, list); gone.Len() > 0 {
			changes.Set(name, gone)
		}
	}
	return o.diff(d, changes), nil
}

// removeAll removes options of a section, and returns their former values.
func (o *optionsAbsent) removeAll(d *document, section string, options *value.List) *value.Map {
	gone := value.NewMap()
	for _, item := range options.Items {
		if before, ok := d.remove(section, value.Str(item)); ok {
			gone.Set(value.Str(item), o.former(before))
		}
	}
	return gone
}

// sectionsPresent implements ini.sections_present.
type sectionsPresent struct {
	edit
	Sections []string `sls:"sections"`
}

func (s *sectionsPresent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	d, err := s.read(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	for _, name := range s.Sections {
		if !d.has(name) {
			d.add(name)
			changes.Set(name, value.NewMap("before", nil, "after", value.NewMap()))
		}
	}
	return s.diff(d, changes), nil
}

// sectionsAbsent implements ini.sections_absent.
type sectionsAbsent struct {
	edit
	Sections []string `sls:"sections"`
}

func (s *sectionsAbsent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	d, err := s.read(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	for _, name := range s.Sections {
		if !d.has(name) {
			continue
		}
		options := value.NewMap()
		for _, key := range d.keys(name) {
			before, _ := d.get(name, key)
			options.Set(key, s.former(before))
		}
		d.drop(name)
		changes.Set(name, options)
	}
	return s.diff(d, changes), nil
}
