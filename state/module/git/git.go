// Package git implements git.latest and the other git states, which manage checkouts of repositories.
//
// Check runs git ls-remote to read the branches and tags of a remote repository. It therefore writes nothing,
// and a dry run names the commit that a run would check out. git never prompts for a password: credentials for
// https are passed in the environment of the commands that need them and are neither on a command line nor in a
// configuration file.
package git

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Tables returns the functions of git, by state.
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
