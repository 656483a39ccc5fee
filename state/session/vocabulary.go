package session

import "github.com/corpus-agent/corpus-agent/state/module"

// vocabulary implements compile.Vocabulary with the registry and with the states of a tree.
type vocabulary struct {
	module.Registry
	own *ownModules
}

// Refuses is part of compile.Vocabulary.
func (v vocabulary) Refuses(state string) error {
	if len(v.Registry[state]) > 0 {
		return nil
	}
	return v.own.why("states", state)
}
