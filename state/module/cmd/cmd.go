// Package cmd implements cmd.run, cmd.script and the other cmd states, which run commands.
//
// What a command changes is unknown before it runs. Check therefore reports that the command would run with unknown
// changes. The guards unless, onlyif and creates determine when there is nothing to do.
package cmd

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions returns the functions of cmd.
func Functions(scripts Scripts) module.Table {
	return module.Table{
		"run":         func() module.Resource { return &run{} },
		"wait":        func() module.Resource { return &waiting{} },
		"watch":       func() module.Resource { return &waiting{} },
		"script":      func() module.Resource { return &script{scripts: scripts} },
		"wait_script": func() module.Resource { return &waitingScript{script: script{scripts: scripts}} },
	}
}
