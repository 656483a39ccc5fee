package session

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/roots"
)

// vocabulary is what the compiler may know of the registry, and of a tree that brings states of its
// own along.
type vocabulary struct {
	module.Registry
	tree *roots.Roots
}

// Refuses is part of compile.Vocabulary.
func (v vocabulary) Refuses(state string) error { return ownModule(v.tree, "_states", state) }

// ownModule refuses a module of the tree's own by its name, or is nil if there is none.
func ownModule(tree *roots.Roots, dir, name string) error {
	for _, env := range tree.Envs() {
		for _, path := range []string{dir + "/" + name + ".py", dir + "/" + name + "/__init__.py"} {
			_, ok, err := tree.Find(env, path)
			if err != nil {
				return err
			}
			if ok && name != "" {
				return diag.WithHint(fmt.Errorf("%s is a Python program, which this engine does not run", path),
					"converge this host with `engine: salt-call`, or write it as SLS")
			}
		}
	}
	return nil
}
