// Package git holds git.latest and its kin: states about checkouts of repositories.
//
// What the remote repository has is asked of it directly (git ls-remote), so that a check needs no
// fetch and writes nothing, and a dry run names the commit that a run would check out. git itself
// does the rest. It never asks for a password: those for https come from the environment of the one
// command that needs them, and stand on no command line and in no configuration.
package git

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Tables are the functions of these states, by state.
func Tables() module.Registry {
	return module.Registry{"git": {
		"latest": func() module.Resource {
			return &latest{Rev: "HEAD", Remote: "origin", UpdateHead: true, FetchTags: true, SyncTags: true}
		},
		"cloned":       func() module.Resource { return &cloned{} },
		"detached":     func() module.Resource { return &detached{Remote: "origin", FetchRemote: true} },
		"present":      func() module.Resource { return &present{Bare: true} },
		"config_set":   func() module.Resource { return &configSet{} },
		"config_unset": func() module.Resource { return &configUnset{} },
	}}
}
