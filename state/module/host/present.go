package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements host.present.
type present struct {
	edit
	Name    string   `sls:"name"`
	IP      []string `sls:"ip,required"`
	Comment string   `sls:"comment"`
	Clean   bool     `sls:"clean"` // remove the name from all other addresses
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := oneName(p.Name); err != nil {
		return module.Diff{}, err
	}
	if err := addresses(p.IP); err != nil {
		return module.Diff{}, err
	}
	if strings.ContainsAny(p.Comment, "\r\n") {
		return module.Diff{},
			fmt.Errorf("the comment %q has a line break, and %s has one line for an address", p.Comment, path)
	}
	f, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes, warnings := p.change(f)
	if changes.Len() == 0 {
		return module.Diff{Comment: fmt.Sprintf("%s has %s", path, p.Name), Warnings: warnings}, nil
	}
	p.done = fmt.Sprintf("%s was written with %s", path, p.Name)
	return module.Diff{Changes: changes, Warnings: warnings,
		Comment: fmt.Sprintf("%s would change for %s", path, p.Name)}, nil
}

// change computes the new text and its changes.
func (p *present) change(f *file) (changes *value.Map, warnings []string) {
	p.text = f.text
	added, commented := p.add(f)
	removed, warnings := p.clean(f)
	changes = value.NewMap()
	for _, part := range []struct {
		name string
		of   *value.Map
	}{{"added", added}, {"comment_added", commented}, {"removed", removed}} {
		if part.of.Len() > 0 {
			changes.Set(part.name, part.of)
		}
	}
	return changes, warnings
}

// add adds the name and the comment to the addresses.
func (p *present) add(f *file) (added, commented *value.Map) {
	added, commented = value.NewMap(), value.NewMap()
	for _, ip := range p.IP {
		e, known := f.at[ip]
		isNew := !known || !slices.Contains(e.names, p.Name)
		if isNew {
			added.Set(ip, value.Strings(p.Name))
		}
		if p.Comment != "" && (isNew || e.comment != p.Comment) {
			commented.Set(ip, value.Strings(p.Comment))
		}
	}
	if added.Len()+commented.Len() == 0 {
		return added, commented
	}
	p.text = p.written(added, commented)
	return added, commented
}

// written returns the text of the file with the name added to the addresses in added, and with the comment set for
// those in commented.
func (p *present) written(added, commented *value.Map) string {
	f := parse(p.text)
	for _, ip := range p.IP {
		if e := f.entry(ip); added.Has(ip) {
			e.names = append(e.names, p.Name)
		}
		if commented.Has(ip) {
			f.entry(ip).comment = p.Comment
		}
	}
	return f.String()
}

// clean removes the name from all other addresses, or warns about them.
func (p *present) clean(f *file) (removed *value.Map, warnings []string) {
	removed = value.NewMap()
	for _, e := range f.entries {
		if !slices.Contains(e.names, p.Name) || slices.Contains(p.IP, e.ip) {
			continue
		}
		if !p.Clean {
			warnings = append(warnings,
				fmt.Sprintf("%s also has the address %s; set clean: True to remove it, or add it to ip", p.Name, e.ip))
			continue
		}
		removed.Set(e.ip, value.Strings(p.Name))
		p.text = without(p.text, e.ip, p.Name)
	}
	return removed, warnings
}
