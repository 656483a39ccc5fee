package session

import "github.com/corpus-agent/corpus-agent/state/module"

// vocabulary is what the compiler may know of the registry, and of a tree that brings states of its
// own along.
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
