package function

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// pkgActs install and remove packages, maintain repositories and refresh their indexes.
func pkgActs(f *Facts) Table {
	p := pkg{f}
	return byState(f, map[string]deed{
		"pkg.install":  {signature: "name=None", state: "pkg.installed"},
		"pkg.remove":   {signature: "name=None", state: "pkg.removed"},
		"pkg.purge":    {signature: "name=None", state: "pkg.purged"},
		"pkg.upgrade":  {signature: "name='all'", state: "pkg.uptodate"},
		"pkg.mod_repo": {signature: "repo", state: "pkgrepo.managed", rename: map[string]string{"repo": "name"}},
		"pkg.del_repo": {signature: "repo", state: "pkgrepo.absent", rename: map[string]string{"repo": "name"}},
		"pkg.hold":     {signature: "name=None", state: "pkg.held"},
		"pkg.unhold":   {signature: "name=None", state: "pkg.unheld"},
	}).add(Table{
		"pkg.refresh_db": Of("cache_valid_time=0, failhard=False, **kwargs", p.refresh),
		"lowpkg.unpurge": Of("*packages", p.unpurge),
	})
}

// refresh gets the indexes. What could not be had of them is told, and with failhard an error.
func (p pkg) refresh(ctx context.Context, age any, failhard bool, _ *value.Map) (*value.Map, error) {
	told := value.NewMap()
	seconds, err := strconv.Atoi(value.Str(age))
	if age != nil && err != nil {
		return nil, typeError("argument cache_valid_time: a number of seconds was expected")
	}
	if err := p.Host.Packages.Allowed("refreshing the package indexes"); err != nil {
		return nil, err
	}
	if seconds > 0 && p.Host.Packages.Fresh(time.Duration(seconds)*time.Second) {
		return told, nil
	}
	warnings, err := p.Host.Packages.Refresh(ctx)
	for _, w := range warnings {
		told.Set(w, false)
	}
	if err == nil && failhard && len(warnings) > 0 {
		err = fmt.Errorf("refreshing the package indexes: %s", warnings[0])
	}
	return told, err
}

// unpurge marks packages that are to be purged as ones to install.
func (p pkg) unpurge(ctx context.Context, names []string) (*value.Map, error) {
	selections := ""
	for _, name := range names {
		if strings.ContainsAny(name, " \t\n/") || name == "" {
			return nil, fmt.Errorf("%q is no package's name", name)
		}
		selections += name + " install\n"
	}
	if !p.debian() || selections == "" {
		return value.NewMap(), nil
	}
	if err := p.Host.Packages.Allowed("marking packages"); err != nil {
		return nil, err
	}
	_, err := host.Program{Name: "dpkg", Stdin: selections, Limit: time.Minute}.Do(ctx, p.Host, "--set-selections")
	return value.NewMap(), err
}
