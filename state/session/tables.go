package session

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables provides the functions of a session. The agent uses those of all families (state/families); a program that
// changes no host uses fewer.
type Tables interface {
	// Reading returns the functions that templates may call.
	Reading(f function.Facts) function.Table
	// Acting returns these and the functions that change something, for people and module.run.
	Acting(f function.Facts) function.Table
	// Filters returns the filters of templates that read the host.
	Filters(f *function.Facts) map[string]jinja.Filter
	// States returns the state functions. It must not use s, which is incomplete; the functions may use it when they run.
	States(s *Session) module.Registry
}

// noTables has no functions.
type noTables struct{}

func (noTables) Reading(function.Facts) function.Table           { return function.Table{} }
func (noTables) Acting(function.Facts) function.Table            { return function.Table{} }
func (noTables) Filters(*function.Facts) map[string]jinja.Filter { return nil }
func (noTables) States(*Session) module.Registry                 { return module.Registry{} }

// Sources returns the Sources of the session's states.
func (s *Session) Sources() *Sources { return s.sources }

// Actions returns the functions that module.run may call.
func (s *Session) Actions() TreeFunctions { return s.actions }

// Option returns an option of the minion that is a string, or "" if the option is missing or has another type.
func (s *Session) Option(name string) string { return s.option(name) }

// InPillar returns the value at a path in the part of the pillar that has been compiled so far.
func (s *Session) InPillar(path, delimiter string) (any, bool) {
	return value.Lookup(s.pillar, path, delimiter)
}

// RenderFile renders the template of a file, with variables beside the usual ones.
func (s *Session) RenderFile(ctx context.Context, engine string, src render.Source, own *value.Map) (string, error) {
	vars := s.vars(src.Env, s.pillar)
	vars.Update(own)
	place := src.Name
	if local, ok, err := s.sources.Local(src.Name, src.Env); err != nil {
		return "", err
	} else if ok {
		place = local
	}
	if err := s.sources.CheckTrusted(src.Name, src.Env); err != nil {
		return "", err
	}
	src.File, src.Name = place, treePath(src.Name)
	return s.renderer.Text(withTree(ctx, s.states), engine, src, vars)
}

// Connection returns a setting of the connection to a server, such as mysql.user: an option, or the pillar as
// mysql.user or as user below mysql.
func (s *Session) Connection(name string) string {
	for _, v := range []any{s.options.Value(name), s.pillar.Value(name)} {
		if v != nil {
			return value.Str(v)
		}
	}
	if v, ok := value.Lookup(s.pillar, name, "."); ok && v != nil {
		if _, is := v.(*value.Map); !is {
			return value.Str(v)
		}
	}
	return ""
}
