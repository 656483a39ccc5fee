package exec_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// fetching is a host.Packages that records the packages to fetch ahead, and the end of the fetch.
type fetching struct {
	host.Packages
	own, later []string
	ended      bool
}

func (f *fetching) FetchAhead(_ context.Context, own host.Transaction,
	later func() []host.Transaction) func(context.Context) {
	if f.own != nil {
		return nil
	}
	for _, w := range own.Packages {
		f.own = append(f.own, w.Name)
	}
	for _, t := range later() {
		for _, w := range t.Packages {
			f.later = append(f.later, w.Name+w.Version)
		}
	}
	return func(ctx context.Context) { <-ctx.Done(); f.ended = true }
}

// TestPackagesFetchedAhead checks which packages of later states the first state that installs packages fetches.
func TestPackagesFetchedAhead(t *testing.T) {
	const repository = "foo 1.0\nbar 1.1 1.0 needs=lib\nbaz 1.0\nlib 3.0\n"
	const between = "between: {file.managed: [{name: /between}, {contents: x}]}\n"
	for name, c := range map[string]struct {
		sls, packages, own, later string
		test                      bool
	}{
		"packages of all later states": {
			sls: "foo: {pkg.installed: []}\n" + between + "bar: {pkg.installed: [{version: '1.0'}]}\nbaz: {pkg.installed: []}\n",
			own: "foo", later: "bar1.0 baz",
		},
		"nothing in a dry run": {
			sls: "foo: {pkg.installed: []}\n" + between + "bar: {pkg.installed: []}\n", test: true,
		},
		"no installed packages": {
			sls:      "foo: {pkg.installed: []}\n" + between + "bar: {pkg.installed: []}\nbaz: {pkg.installed: []}\n",
			packages: "bar 1.1\n", own: "foo", later: "baz",
		},
		"no packages of states with a guard or onchanges": {
			sls: "foo: {pkg.installed: []}\n" + between + "bar: {pkg.installed: [{unless: 'true'}]}\n" +
				"baz: {pkg.installed: [{onchanges: [{file: between}]}]}\nlib: {pkg.installed: [{require: [{file: between}]}]}\n",
			own: "foo", later: "lib",
		},
		"no packages after a state that adds a repository": {
			sls: "foo: {pkg.installed: []}\nrepository: {file.managed: [{name: /etc/apt/sources.list.d/x.list}, " +
				"{contents: x}]}\nbar: {pkg.installed: []}\n",
			own: "foo",
		},
		"no packages that require a later repository": {
			sls: "foo: {pkg.installed: [{order: 1}]}\nbar: {pkg.installed: [{order: 2}, {require: [{file: repository}]}]}\n" +
				"repository: {file.managed: [{name: /etc/apt/sources.list.d/x.list}, {contents: x}]}\n",
			own: "foo",
		},
		"no packages that another state removes, or that have other options": {
			sls: "foo: {pkg.installed: []}\n" + between + "bar: {pkg.removed: []}\nbaz: {pkg.installed: [{fromrepo: other}]}\n",
			own: "foo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := statetest.NewHost(t)
			statetest.UsePackages(h)
			packages := &fetching{Packages: h.Packages}
			h.Packages = packages
			h.Put("/repository", repository)
			h.Put("/packages", c.packages)
			h.Put("/srv/t.sls", c.sls)
			s := families.New(session.Settings{Host: h.Host, ID: "h", Grains: value.NewMap("id", "h"), Test: c.test,
				States: []roots.Env{{Name: "base", Dirs: []string{"/srv"}}}})
			if _, err := s.Call(context.Background(), "state.apply", []any{"t"}, value.NewMap(), nil); err != nil {
				t.Fatal(err)
			}
			own, later := strings.Join(packages.own, " "), strings.Join(packages.later, " ")
			if own != c.own || later != c.later {
				t.Errorf("beside %q, %q is fetched; want %q beside %q", own, later, c.later, c.own)
			}
			if packages.ended != (c.own != "") {
				t.Errorf("the run ended before the fetch: %v", packages.ended)
			}
		})
	}
}
