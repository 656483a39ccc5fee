package families

import (
	"maps"

	"github.com/corpus-agent/corpus-agent/state/function"
	functions "github.com/corpus-agent/corpus-agent/state/function/table"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// New returns a session with the functions of all families.
func New(settings session.Settings) *session.Session {
	settings.Tables = Tables{}
	return session.New(settings)
}

// Tables provides the functions of all families.
type Tables struct{}

// Reading implements session.Tables.
func (Tables) Reading(f function.Facts) function.Table { return withAccounts(functions.New(f), f) }

// Acting implements session.Tables.
func (Tables) Acting(f function.Facts) function.Table { return withAccounts(functions.Acting(f), f) }

// Filters implements session.Tables.
func (Tables) Filters(f *function.Facts) map[string]jinja.Filter { return functions.Filters(f) }

// States implements session.Tables.
func (Tables) States(s *session.Session) module.Registry { return states(s) }

func withAccounts(t function.Table, f function.Facts) function.Table {
	maps.Copy(t, accountFunctions(f.Host))
	return t
}
