package pkg

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Acting returns the functions that install and remove packages, maintain repositories and refresh their indexes.
func Acting(f *function.Facts) function.Table {
	p := pkg{f}
	return function.StateFunctions(f, map[string]function.ByState{
		"pkg.install":  {Signature: "name=None", State: "pkg.installed"},
		"pkg.remove":   {Signature: "name=None", State: "pkg.removed"},
		"pkg.purge":    {Signature: "name=None", State: "pkg.purged"},
		"pkg.upgrade":  {Signature: "name='all'", State: "pkg.uptodate"},
		"pkg.mod_repo": {Signature: "repo", State: "pkgrepo.managed", Rename: map[string]string{"repo": "name"}},
		"pkg.del_repo": {Signature: "repo", State: "pkgrepo.absent", Rename: map[string]string{"repo": "name"}},
		"pkg.hold":     {Signature: "name=None", State: "pkg.held"},
		"pkg.unhold":   {Signature: "name=None", State: "pkg.unheld"},
	}).Add(function.Table{
		"pkg.refresh_db": function.Of("cache_valid_time=0, failhard=False, **kwargs", p.refresh),
		"lowpkg.unpurge": function.Of("*packages", p.unpurge),
	})
}

// refresh fetches the indexes. Those that could not be fetched are in the result; with failhard, they are an error.
func (p pkg) refresh(ctx context.Context, age any, failhard bool, _ *value.Map) (*value.Map, error) {
	failed := value.NewMap()
	seconds, err := strconv.Atoi(value.Str(age))
	if age != nil && err != nil {
		return nil, function.TypeError("argument cache_valid_time: a number of seconds was expected")
	}
	if err := p.Host.Packages.Allowed("refreshing the package indexes"); err != nil {
		return nil, err
	}
	if seconds > 0 && p.Host.Packages.Fresh(time.Duration(seconds)*time.Second) {
		return failed, nil
	}
	warnings, err := p.Host.Packages.Refresh(ctx)
	for _, w := range warnings {
		failed.Set(w, false)
	}
	if err == nil && failhard && len(warnings) > 0 {
		err = fmt.Errorf("refreshing the package indexes: %s", warnings[0])
	}
	return failed, err
}

// unpurge marks packages for installation that are marked to be purged.
func (p pkg) unpurge(ctx context.Context, names []string) (*value.Map, error) {
	selections := ""
	for _, name := range names {
		if strings.ContainsAny(name, " \t\n/") || name == "" {
			return nil, fmt.Errorf("%q is not the name of a package", name)
		}
		selections += name + " install\n"
	}
	if !p.debian() || selections == "" {
		return value.NewMap(), nil
	}
	if err := p.Host.Packages.Allowed("marking packages"); err != nil {
		return nil, err
	}
	_, err := program.Program{Name: "dpkg", Stdin: selections, Limit: time.Minute}.Do(ctx, p.Host, "--set-selections")
	return value.NewMap(), err
}
