package session

import "github.com/corpus-agent/corpus-agent/state/module"

// Modules are all state functions of a session.
func (s *Session) Modules() module.Registry { return s.modules }
