package pkgrepo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pkgrepo"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestDryRunChecksThatTheRepositoryExists checks that a dry run fails, like the run, if the server does not have the
// key or the repository.
func TestDryRunChecksThatTheRepositoryExists(t *testing.T) {
	for _, c := range []struct {
		name, key, want string
		served          []string
	}{
		{name: "deb https://deb.example.org/debian stable main",
			served: []string{"deb.example.org/debian/dists/stable/InRelease"}},
		{name: "deb https://deb.example.org/debian/ stable main",
			served: []string{"deb.example.org/debian/dists/stable/Release"}},
		{name: "deb https://deb.example.org/flat ./", served: []string{"deb.example.org/flat/InRelease"}},
		{name: "deb https://deb.example.org/debian stabel main",
			served: []string{"deb.example.org/debian/dists/stable/InRelease"},
			want:   "no repository at https://deb.example.org/debian/dists/stabel/"},
		{name: "# deb https://deb.example.org/none stable main"},
		{name: "deb file:/srv/repo ./"},
		{name: "deb https://deb.example.org/debian stable main", key: "https://deb.example.org/key.asc",
			served: []string{"deb.example.org/debian/dists/stable/InRelease"},
			want:   "https://deb.example.org/key.asc: "},
	} {
		h := statetest.NewHost(t)
		statetest.UsePackages(h)
		files := statetest.Tree{}
		for _, name := range c.served {
			files["/https/"+name] = statetest.File("")
		}
		h.Build(t, files)
		resource := hosttest.Resource(t, pkgrepo.Functions(tree{h}),
			"managed", value.NewMap("name", c.name, "key_url", c.key))
		d, err := resource.(module.Rehearser).Rehearse(context.Background(), h.Host)
		switch {
		case c.want == "" && (err != nil || d.Empty()):
			t.Errorf("%s: %+v, %v", c.name, d, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || diag.HintOf(err) == ""):
			t.Errorf("%s: got %v, want %s and a hint", c.name, err, c.want)
		}
	}
}
