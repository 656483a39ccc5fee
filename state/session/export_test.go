package session

import (
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Modules returns all state functions of a session.
func (s *Session) Modules() module.Registry { return s.modules }

// Decode reads the arguments of a call into a resource.
func (s *Session) Decode(r module.Resource, c module.Call) (warnings, problems diag.List) {
	return s.decoder.Decode(r, c)
}
