// Package pkg implements pkg.installed and the other pkg states, which manage the packages of the host's
// package manager.
//
// Check compares the package database with the wanted packages and makes the package manager simulate the
// transaction. A dry run therefore lists every package that would be installed, upgraded or removed,
// dependencies included, with its version. Only Apply refreshes the indexes: once per run, and only if a state
// has something to install. If the result depends on a refresh, as with pkg.latest, Check reports that the
// changes are unknown.
//
// The reported changes are read from the package database after the transaction.
package pkg

import (
	"context"
	"io"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Sources opens a URL such as salt:// or http://; env is the environment of the state tree.
type Sources interface {
	Open(ctx context.Context, url, env string) (io.ReadCloser, error)
}

// Functions returns the functions of pkg.
func Functions(sources Sources) module.Table {
	removals := &planned{by: map[string]string{}}
	return module.Table{
		"installed": func() module.Resource {
			return &installed{install: newInstall(), sources: sources, planned: removals}
		},
		"latest":          func() module.Resource { return &latest{install: newInstall()} },
		"downloaded":      func() module.Resource { return &downloaded{install: newInstall()} },
		"removed":         func() module.Resource { return &removed{selection: selection{Normalize: true}} },
		"purged":          func() module.Resource { return &removed{selection: selection{Normalize: true}, purge: true} },
		"uptodate":        func() module.Resource { return &uptodate{selection: selection{Normalize: true}} },
		"held":            func() module.Resource { return &held{selection: selection{Normalize: true}} },
		"unheld":          func() module.Resource { return &unheld{selection: selection{Normalize: true}} },
		"group_installed": func() module.Resource { return &group{} },
	}
}
