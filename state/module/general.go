package module

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// requisites and guards decide whether and when a step acts: without one of them a step does what its author excluded.
var requisites = []string{
	"require", "require_any", "require_in", "watch", "watch_any", "watch_in", "onchanges", "onchanges_any", "onchanges_in",
	"onfail", "onfail_any", "onfail_all", "onfail_in", "prereq", "prereq_in", "listen", "listen_in", "use", "use_in",
}

var guards = []string{"unless", "onlyif", "creates", "check_cmd"}

// general are the other arguments that belong to the run and not to the function.
var general = []string{
	"name", "names", "state", "fun", "sfun", "order", "failhard", "cmd_opts_exclude", "retry",
	"parallel", "reload_modules",
	"reload_grains", "reload_pillar", "runas", "runas_password", "fire_event", "saltenv",
	"umask", "onfail_stop", "prerequired",
	"aggregate", "provider", "follow_unsafe",
}

// General reports whether an argument belongs to the run and not to the function.
func General(name string) bool {
	return slices.Contains(general, name) || slices.Contains(requisites, name) || slices.Contains(guards, name) ||
		strings.HasPrefix(name, "__")
}

// ordinary are words that arguments of functions have and that are a letter away from a requisite or a guard. Those of
// open are left alone only in functions that take arguments of any name.
var (
	ordinary = []string{"user", "match", "create", "created", "batch", "patch", "listed"}
	open     = []string{"uses", "required", "requires"}
)

// control is the requisite or the guard that an unknown argument misspells; "" if it misspells none, or rather an argument
// of the function.
func (s *shape) control(name string) string {
	if slices.Contains(ordinary, name) || s.rest != nil && slices.Contains(open, name) || diag.Misspelling(name, s.names()) != "" {
		return ""
	}
	return diag.Misspelling(name, append(slices.Clone(requisites), guards...))
}

// Misspelled lists the arguments of a call that are unknown and misspell a requisite or a guard, also those of functions that
// take arguments of any name. A step with "unles" runs where its author meant that it does not.
func (d *Decoder) Misspelled(r Resource, c Call) (problems diag.List) {
	s := d.shape(typeOf(r))
	for key := range c.Arguments.All() {
		name := value.Str(key)
		if _, known := s.fields[name]; known || General(name) {
			continue
		}
		if meant := s.control(name); meant != "" {
			problems.Add(c.at(name), "%s has no argument %s", c.Function, name).WithHint("write " + meant + ", or leave it out")
		}
	}
	return problems
}
