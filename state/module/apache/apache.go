// Package apache implements the states apache_module, apache_site and apache_conf, which enable modules, sites
// and configurations of Debian's Apache.
//
// An enabled item is a link in a directory. The states read the links and change them with a2enmod and the
// similar programs, which know the dependencies.
package apache

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables returns the functions by state.
func Tables() module.Registry {
	all := module.Registry{}
	for state, k := range map[string]kind{
		"apache_module": {"mod", "module", []string{".load", ".conf"}},
		"apache_site":   {"site", "site", []string{".conf", ""}},
		"apache_conf":   {"conf", "configuration", []string{".conf", ""}},
	} {
		all[state] = module.Table{
			"enabled":  func() module.Resource { return &loaded{kind: k, on: true} },
			"disabled": func() module.Resource { return &loaded{kind: k} },
		}
	}
	return all
}

// kind is a kind of item that Apache loads.
type kind struct {
	word    string // part of the names of programs and directories
	what    string // for messages
	endings []string
}

// loaded implements all of these states.
type loaded struct {
	Name string `sls:"name"`

	kind kind
	on   bool
}

// file reports whether a directory of /etc/apache2 contains the item.
func (l *loaded) file(h *host.Host, dir string) bool {
	return slices.ContainsFunc(l.kind.endings, func(ending string) bool {
		_, err := h.Files.Lstat(path.Join("/etc/apache2", l.kind.word+"s-"+dir, strings.TrimSuffix(l.Name, ending)+ending))
		if l.kind.word == "conf" {
			_, err = h.Files.Lstat(path.Join("/etc/apache2", "conf-"+dir, strings.TrimSuffix(l.Name, ending)+ending))
		}
		return err == nil
	})
}

func (l *loaded) program() program.Program {
	verb := map[bool]string{true: "a2en", false: "a2dis"}[l.on]
	return program.Program{Name: verb + l.kind.word, Package: "apache2", Limit: 2 * time.Minute}
}

func (l *loaded) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if l.Name == "" || strings.ContainsAny(l.Name, "/ ") || strings.HasPrefix(l.Name, "-") {
		return module.Diff{}, fmt.Errorf("%q is not a valid name of a %s", l.Name, l.kind.what)
	}
	if l.file(h, "enabled") == l.on {
		return module.Diff{Comment: fmt.Sprintf("the %s %s is %s", l.kind.what, l.Name, l.state())}, nil
	}
	if ok, err := l.program().Ready(h); err != nil || !ok {
		return module.Awaits("Apache", fmt.Sprintf("have the %s %s %s", l.kind.what, l.Name, l.state())), err
	}
	if l.on && !l.file(h, "available") {
		return module.Awaits(fmt.Sprintf("the %s %s", l.kind.what, l.Name), "enable it"), nil
	}
	return module.Diff{Changes: l.changes(),
		Comment: fmt.Sprintf("would have the %s %s %s", l.kind.what, l.Name, l.state())}, nil
}

func (l *loaded) state() string { return map[bool]string{true: "enabled", false: "disabled"}[l.on] }

func (l *loaded) changes() *value.Map {
	if l.on {
		return value.NewMap("old", nil, "new", l.Name)
	}
	return value.NewMap("old", l.Name, "new", nil)
}

func (l *loaded) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	program := l.program()
	if ok, err := program.Ready(h); err != nil || !ok {
		return module.Report{}, orMissing(err, program)
	}
	if l.on && !l.file(h, "available") {
		return module.Report{}, diag.Setting.Hint(fmt.Errorf("there is no %s %s", l.kind.what, l.Name), "%s", l.hint(h))
	}
	if _, err := program.Do(ctx, h, "--quiet", l.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: l.changes(),
		Comment: fmt.Sprintf("the %s %s is %s", l.kind.what, l.Name, l.state())}, nil
}

func orMissing(err error, p program.Program) error {
	if err != nil {
		return err
	}
	return p.Missing()
}

// hint returns a hint that suggests a similar name or, if there is none, to require or install the item.
func (l *loaded) hint(h *host.Host) string {
	dir := l.kind.word + "s-available"
	if l.kind.word == "conf" {
		dir = "conf-available"
	}
	names, _ := h.Files.ReadDir(path.Join("/etc/apache2", dir)) // missing without Apache
	for i, name := range names {
		names[i] = strings.TrimSuffix(strings.TrimSuffix(name, ".load"), ".conf")
	}
	if meant := diag.DidYouMean(l.Name, names); meant != "" {
		return meant
	}
	return "require the state that makes it, or install the package that brings it"
}
