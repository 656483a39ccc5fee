// Package ldap implements ldap.managed, which keeps entries of LDAP servers as they are declared.
package ldap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/ldap"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of ldap.
func Functions() module.Table {
	return module.Table{"managed": func() module.Resource { return &managed{} }}
}

// managed implements ldap.managed.
type managed struct {
	Name    string `sls:"name"` // URL of the server, unless connect_spec has one
	Connect any    `sls:"connect_spec"`
	Entries any    `sls:"entries,required"`
}

// Valid implements module.Validated.
func (m *managed) Valid() error {
	if _, err := ldap.Parse(m.Connect, m.Name); err != nil {
		return err
	}
	_, err := declared(m.Entries, func(string) (ldap.Attributes, error) { return nil, nil })
	return err
}

// entry is an entry before and after the run. Without attributes it does not exist.
type entry struct {
	dn       string
	old, new ldap.Attributes
}

// differing returns the attributes that differ, with their values afterwards, which may be none.
func (e *entry) differing() ldap.Attributes {
	all := ldap.Attributes{}
	for _, attributes := range []ldap.Attributes{e.old, e.new} {
		for name := range attributes {
			if !same(e.old[name], e.new[name]) {
				all[name] = e.new[name]
			}
		}
	}
	return all
}

// same compares values, which have no order and are different from each other.
func same(a, b []string) bool {
	for _, v := range a {
		if !slices.Contains(b, v) {
			return false
		}
	}
	return len(a) == len(b)
}

// plan returns the entries that have to change, in the order of the declaration.
func (m *managed) plan(ctx context.Context, h *host.Host) (server ldap.Server, differing []*entry, err error) {
	if server, err = ldap.Parse(m.Connect, m.Name); err != nil {
		return server, nil, err
	}
	all, err := declared(m.Entries, func(dn string) (ldap.Attributes, error) {
		found, err := server.Search(ctx, h, "-s", "base", "-b", dn)
		if err == nil && len(found) > 0 {
			return found[0].Attributes, nil
		}
		if program.EndedWith(err, ldap.NoSuchObject) {
			err = nil
		}
		return nil, err
	})
	for _, e := range all {
		if len(e.differing()) > 0 {
			differing = append(differing, e)
		}
	}
	return server, differing, err
}

// Check implements module.Resource.
func (m *managed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	p := ldap.Server{}.Program()
	if ready, err := p.Ready(h); err != nil || !ready {
		return module.Awaits(p.Name, "set LDAP entries"), err
	}
	_, all, err := m.plan(ctx, h)
	switch {
	case errors.Is(err, ldap.ErrUnreachable):
		return module.Awaits("the server", "set LDAP entries"), nil
	case err != nil || len(all) == 0:
		return module.Diff{Comment: fine}, err
	}
	return module.Diff{Changes: changes(all), Comment: "Would change LDAP entries"}, nil
}

const fine = "LDAP entries already set"

// Apply implements module.Resource. It compares again, since the server may have started after Check. As in Salt, an
// entry that fails does not prevent the others.
func (m *managed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	server, all, err := m.plan(ctx, h)
	if err != nil || len(all) == 0 {
		return module.Report{Comment: fine}, err
	}
	var done []*entry
	for _, e := range all {
		change, attributes := "modify", e.differing()
		switch {
		case len(e.new) == 0:
			change, attributes = "delete", nil
		case len(e.old) == 0:
			change, attributes = "add", e.new
		}
		failure := server.Change(ctx, h, change, e.dn, forActiveDirectory(attributes))
		switch {
		case failure == nil:
			done = append(done, e)
		case err == nil:
			err = fmt.Errorf("failed to %s entry %s (%w)", change, e.dn, failure)
		default:
			err = fmt.Errorf("%w, %s entry %s (%w)", err, change, e.dn, failure)
		}
	}
	return module.Report{Changes: changes(done), Comment: "Successfully updated LDAP entries"}, err
}

// changes returns what a result reports about entries.
func changes(all []*entry) *value.Map {
	out := value.NewMap()
	for _, e := range all {
		names := e.differing()
		out.Set(e.dn, value.NewMap("old", shown(names, e.old), "new", shown(names, e.new)))
	}
	return out
}

// shown returns the values of attributes in order, or None for an entry that does not exist.
func shown(names, from ldap.Attributes) any {
	if len(from) == 0 {
		return nil
	}
	out := value.NewMap()
	for _, name := range names.Names() {
		values := slices.Clone(from[name])
		slices.Sort(values)
		if len(values) > 0 && secret(name) {
			values = []string{"<secret>"}
		}
		if len(values) > 0 {
			out.Set(name, value.Strings(values...))
		}
	}
	return out
}

// secret reports whether an attribute has passwords or hashes of them.
func secret(name string) bool {
	for _, end := range []string{"password", "rootpw", "pwd", "history", "principalkey", "credentials"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return true
		}
	}
	return false
}
