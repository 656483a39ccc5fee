package exec_test

import (
	"context"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestBatches runs trees of states that install packages, and checks the calls of the package manager and the results.
func TestBatches(t *testing.T) {
	const repository = "foo 1.0\nbar 1.1 1.0 needs=lib\nbaz 1.0\nlib 3.0\nbroken 1.0 fails=yes\n"
	for name, c := range map[string]struct {
		sls, packages, log string
		failhard           bool
		results            map[string]string // by ID: outcome and the packages that changed
	}{
		"states in a row are one transaction, and each reports its own packages": {
			sls:     "foo: {pkg.installed: []}\nbar: {pkg.installed: []}\nbaz: {pkg.installed: []}\n",
			log:     "refresh\ninstall foo bar baz\n",
			results: map[string]string{"foo": "True foo lib", "bar": "True bar", "baz": "True baz"},
		},
		"names, lists and versions": {
			sls:     "a: {pkg.installed: [{names: [foo, baz]}]}\nb: {pkg.installed: [{pkgs: [foo, bar: '1.0']}]}\n",
			log:     "refresh\ninstall foo baz bar=1.0\n",
			results: map[string]string{"a": "True foo lib baz", "b": "True bar"},
		},
		"installed packages are in no transaction": {
			sls:      "foo: {pkg.installed: []}\nbar: {pkg.installed: []}\nbaz: {pkg.installed: []}\n",
			packages: "foo 1.0\nbaz 1.0\n", log: "refresh\ninstall bar\n",
			results: map[string]string{"foo": "True", "bar": "True bar lib", "baz": "True"},
		},
		"a package that no repository has fails its own state": {
			sls:     "foo: {pkg.installed: []}\nnone: {pkg.installed: []}\nbaz: {pkg.installed: []}\n",
			log:     "refresh\ninstall foo\ninstall baz\n",
			results: map[string]string{"foo": "True foo", "none": "False", "baz": "True baz"},
		},
		"requisites, guards and other options split a batch": {
			sls: "foo: {pkg.installed: []}\nbar: {pkg.installed: [{require: [{pkg: foo}]}]}\n" +
				"baz: {pkg.installed: [{retry: {attempts: 1}}]}\nlib: {pkg.installed: [{install_recommends: false}]}\n",
			log:     "refresh\ninstall foo\ninstall bar\ninstall baz\n",
			results: map[string]string{"foo": "True foo", "bar": "True bar lib", "baz": "True baz", "lib": "True"},
		},
		"a failure that stops the run reports what the batch did for the states after it": {
			sls: "foo: {pkg.installed: []}\nbroken: {pkg.installed: []}\nbaz: {pkg.installed: []}\n" +
				"lib: {pkg.installed: []}\n",
			failhard: true, log: "refresh\ninstall foo broken baz lib\ninstall foo\ninstall broken\n",
			results: map[string]string{"foo": "True foo", "broken": "False baz"},
		},
		"the first state fails, and stops the run": {
			sls: "none: {pkg.installed: []}\nfoo: {pkg.installed: []}\n", failhard: true, log: "refresh\n",
			results: map[string]string{"none": "False"},
		},
		"another version of a package of the batch is installed by its own state": {
			sls: "a: {pkg.installed: [{pkgs: [bar: '1.1']}]}\nb: {pkg.installed: [{pkgs: [foo]}]}\n" +
				"c: {pkg.installed: [{pkgs: [bar: '1.0']}]}\n",
			log:     "refresh\ninstall bar=1.1 foo\ninstall bar=1.0\n",
			results: map[string]string{"a": "True bar lib", "b": "True foo", "c": "True bar"},
		},
		"a version that no repository has fails its own state": {
			sls: "foo: {pkg.installed: []}\nlib: {pkg.installed: []}\nbar: {pkg.installed: [{version: '2.0'}]}\n" +
				"baz: {pkg.installed: []}\n",
			log:     "refresh\ninstall foo lib\ninstall baz\n",
			results: map[string]string{"foo": "True foo", "lib": "True lib", "bar": "False", "baz": "True baz"},
		},
		"a batch that fails is done again one by one": {
			sls:     "foo: {pkg.installed: []}\nbroken: {pkg.installed: []}\nbaz: {pkg.installed: []}\n",
			log:     "refresh\ninstall foo broken baz\ninstall foo\ninstall broken\n",
			results: map[string]string{"foo": "True foo", "broken": "False", "baz": "True baz"},
		},
		"each set of options is a batch of its own": {
			sls: "foo: {pkg.installed: []}\nbar: {pkg.installed: []}\nbaz: {pkg.installed: [{install_recommends: false}]}\n" +
				"broken: {pkg.installed: [{install_recommends: false}]}\n",
			log:     "refresh\ninstall foo bar\ninstall baz broken\ninstall broken\n",
			results: map[string]string{"foo": "True foo lib", "bar": "True bar", "baz": "True baz", "broken": "False"},
		},
		"what all states require has run": {
			sls: "first: {test.nop: []}\nfoo: {pkg.installed: [{require: [{test: first}]}]}\nbar: {pkg.installed: []}\n" +
				"baz: {pkg.installed: [{require: [{test: first}]}]}\n",
			log:     "refresh\ninstall foo bar baz\n",
			results: map[string]string{"first": "True", "foo": "True foo lib", "bar": "True bar", "baz": "True baz"},
		},
		"aggregate: False": {
			sls: "foo: {pkg.installed: [{aggregate: false}]}\nbar: {pkg.installed: []}\n" +
				"baz: {pkg.installed: [{aggregate: true}]}\n",
			log:     "refresh\ninstall foo\ninstall bar baz\n",
			results: map[string]string{"foo": "True foo", "bar": "True bar lib", "baz": "True baz"},
		},
		"the newest versions": {
			sls:      "foo: {pkg.latest: []}\nbar: {pkg.latest: []}\nbaz: {pkg.latest: []}\n",
			packages: "foo 0.9\nbaz 1.0\n", log: "refresh\ninstall foo bar\n",
			results: map[string]string{"foo": "True foo lib", "bar": "True bar", "baz": "True"},
		},
		"removals": {
			sls: "foo: {pkg.removed: []}\nlib: {pkg.removed: []}\nbar: {pkg.removed: []}\nbaz: {pkg.purged: []}\n" +
				"bax: {pkg.purged: []}\n",
			packages: "foo 1.0\nbar 1.1\nbaz 1.0\nlib 3.0\nbax 1.0\n", log: "remove foo lib bar\npurge baz bax\n",
			results: map[string]string{"foo": "True foo", "lib": "True lib", "bar": "True bar",
				"baz": "True removed installed", "bax": "True removed installed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := statetest.NewHost(t)
			statetest.UsePackages(h)
			h.Put("/repository", repository)
			h.Put("/packages", c.packages)
			h.Put("/srv/t.sls", c.sls)
			s := families.New(session.Settings{Host: h.Host, ID: "h", Grains: value.NewMap("id", "h"), Failhard: c.failhard,
				States: []roots.Env{{Name: "base", Dirs: []string{"/srv"}}}})
			answer, err := s.Call(context.Background(), "state.apply", []any{"t"}, value.NewMap(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, r := range answer.Value.(*value.Map).All() {
				r := r.(*value.Map)
				id := value.Str(r.Value("__id__"))
				if got[id] == "" {
					got[id] = value.Str(r.Value("result"))
				}
				for _, name := range r.Value("changes").(*value.Map).Names() {
					got[id] += " " + name
				}
			}
			for id, want := range c.results {
				if got[id] != want {
					t.Errorf("%s: %q, want %q", id, got[id], want)
				}
			}
			if len(got) != len(c.results) {
				t.Errorf("results of %v", got)
			}
			if log, _ := h.Files.ReadFile("/packages.log"); string(log) != c.log {
				t.Errorf("the package manager ran\n%swant\n%s", log, c.log)
			}
		})
	}
}
