package module

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// requisites lists the requisites. They decide whether and when a step runs, as the guards do. With a misspelled one, a
// step would run although its author excluded it.
var requisites = []string{
	"require", "require_any", "require_in", "watch", "watch_any", "watch_in", "onchanges", "onchanges_any", "onchanges_in",
	"onfail", "onfail_any", "onfail_all", "onfail_in", "prereq", "prereq_in", "listen", "listen_in", "use", "use_in",
}

var guards = []string{"unless", "onlyif", "creates", "check_cmd"}

// general lists the other arguments that the run handles instead of the function.
var general = []string{
	"name", "names", "state", "fun", "sfun", "order", "failhard", "cmd_opts_exclude", "retry",
	"parallel", "reload_modules",
	"reload_grains", "reload_pillar", "runas", "runas_password", "fire_event", "saltenv",
	"umask", "onfail_stop", "prerequired", "may_fail",
	"aggregate", "provider", "follow_unsafe",
}

// General reports whether the run handles an argument, instead of the function.
func General(name string) bool {
	return slices.Contains(general, name) || slices.Contains(requisites, name) || slices.Contains(guards, name) ||
		strings.HasPrefix(name, "__")
}

// ordinary lists common arguments of functions that differ in one letter from a requisite or a guard and are not
// misspellings of it. Those in open are only accepted for functions that accept arguments of any name.
var (
	ordinary = []string{"user", "match", "create", "created", "batch", "patch", "listed"}
	open     = []string{"uses", "required", "requires"}
)

// control returns the requisite or guard that an unknown argument misspells. It returns "" if there is none or
// if the argument is closer to one of the function's.
func (s *shape) control(name string) string {
	if slices.Contains(ordinary, name) || s.rest != nil && slices.Contains(open, name) ||
		diag.Misspelling(name, s.names()) != "" {
		return ""
	}
	return diag.Misspelling(name, append(slices.Clone(requisites), guards...))
}

// Misspelled returns problems for the unknown arguments of a call that misspell a requisite or a guard, even if the
// function accepts arguments of any name. A step with "unles" would run although its author excluded it.
func (d *Decoder) Misspelled(r Resource, c Call) (problems diag.List) {
	s := d.shape(typeOf(r))
	for key := range c.Arguments.All() {
		name := value.Str(key)
		if _, known := s.fields[name]; known || General(name) {
			continue
		}
		if meant := s.control(name); meant != "" {
			problems.Add(c.at(name), "%s has no argument %s", c.Function, name).
				WithHint(diag.Argument, "write "+meant+", or leave it out")
		}
	}
	return problems
}
