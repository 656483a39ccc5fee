package check

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/config"
	"github.com/corpus-agent/corpus-agent/state/function/data"
	"github.com/corpus-agent/corpus-agent/state/function/defaults"
	"github.com/corpus-agent/corpus-agent/state/function/grains"
	"github.com/corpus-agent/corpus-agent/state/function/hashutil"
	"github.com/corpus-agent/corpus-agent/state/function/log"
	"github.com/corpus-agent/corpus-agent/state/function/match"
	"github.com/corpus-agent/corpus-agent/state/function/mine"
	"github.com/corpus-agent/corpus-agent/state/function/pillar"
	"github.com/corpus-agent/corpus-agent/state/function/random"
	"github.com/corpus-agent/corpus-agent/state/function/saltutil"
	"github.com/corpus-agent/corpus-agent/state/function/slsutil"
	functest "github.com/corpus-agent/corpus-agent/state/function/test"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hostFunctions lists the functions that templates may call and whose answers depend on the host, a line each.
//
//go:embed hostfunctions.txt
var hostFunctions string

// errAsksHost is the error of a template that reads the host.
var errAsksHost = diag.HostOnly(diag.Call.Hint(errors.New("asks the host, and there is none here"),
	"what follows from the answer is checked when a host compiles the tree"))

// hostless provides the functions of a session without a host: functions that only compute are the same as on hosts,
// and functions that read the host return errors.
type hostless struct{ own map[string]bool }

// Reading implements session.Tables.
func (hostless) Reading(facts function.Facts) function.Table {
	f, all := &facts, function.Table{}
	all.Add(config.Functions(f), data.Functions(f), defaults.Functions(f), grains.Functions(f), hashutil.Functions(f),
		log.Functions(f), match.Functions(f), mine.Functions(f, all), pillar.Functions(f), random.Functions(f),
		saltutil.Functions(f), slsutil.Functions(f), functest.Functions(f, all))
	refuse := function.Of("*args, **kwargs", func([]any, *value.Map) (any, error) { return nil, errAsksHost })
	for name := range strings.FieldsSeq(hostFunctions) {
		if _, known := all[name]; !known {
			all[name] = refuse
		}
	}
	return all
}

// Acting implements session.Tables. It returns the functions of Reading, since there is no host to change.
func (t hostless) Acting(f function.Facts) function.Table { return t.Reading(f) }

// Filters implements session.Tables.
func (hostless) Filters(*function.Facts) map[string]jinja.Filter {
	all := map[string]jinja.Filter{}
	for _, name := range HostFilters() {
		all[name] = func(*jinja.Call) (any, error) { return nil, errAsksHost }
	}
	return all
}

// States implements session.Tables. The states have names and do nothing.
func (t hostless) States(*session.Session) module.Registry {
	all := module.Registry{}
	add := func(name string) {
		state, fun, _ := strings.Cut(name, ".")
		if all[state] == nil {
			all[state] = module.Table{}
		}
		all[state][fun] = func() module.Resource { return &inert{} }
	}
	for name := range maps.Keys(functions()) {
		add(name)
	}
	for name := range t.own {
		add(name)
	}
	return all
}

// inert is a state that is compiled and never run.
type inert struct{}

// Check implements module.Resource.
func (*inert) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, errAsksHost
}

// Apply implements module.Resource.
func (*inert) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, errAsksHost
}

// Watched implements module.Watcher, so that a watch is not taken for a mistake.
func (*inert) Watched() module.Resource { return &inert{} }

// noCommands refuses every command of templates.
type noCommands struct{}

// Allowed implements host.Commands.
func (noCommands) Allowed(what string) error { return fmt.Errorf("%s %w", what, errAsksHost) }

// Run implements host.Commands.
func (noCommands) Run(context.Context, host.Command) (host.Output, error) {
	return host.Output{}, errAsksHost
}

// public matches the functions that a Python module makes public.
var public = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:async )?def ([a-z]\w*)\(`)
})

// ownFunctions returns the functions of the tree's own state module with the given name and text.
func ownFunctions(name, text string) (all []string) {
	for _, found := range public().FindAllStringSubmatch(text, -1) {
		all = append(all, name+"."+found[1])
	}
	slices.Sort(all)
	return all
}
