package session

import (
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Modules are all state functions of a session.
func (s *Session) Modules() module.Registry { return s.modules }

// States lists the state functions, as state.function.
func States() []string { return New(Settings{Host: &host.Host{}}).modules.Functions() }
