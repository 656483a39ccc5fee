// Package cmd holds cmd.run and its kin: states that are a command line.
//
// A command is opaque: only running it shows what it changes. So its Check finds that it would run and
// says that the rest is unknown; with unless, onlyif and creates an author declares when there is
// nothing to do.
package cmd

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions are the functions of cmd.
func Functions(scripts Scripts) module.Table {
	return module.Table{
		"run":         func() module.Resource { return &run{} },
		"wait":        func() module.Resource { return &waiting{} },
		"watch":       func() module.Resource { return &waiting{} },
		"script":      func() module.Resource { return &script{scripts: scripts} },
		"wait_script": func() module.Resource { return &waitingScript{script: script{scripts: scripts}} },
	}
}
