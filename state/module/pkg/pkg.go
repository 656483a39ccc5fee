// Package pkg holds pkg.installed and its kin: states about software that comes from a package
// manager.
//
// All of them work alike. Check compares the package database with what was asked for, and lets the
// package manager play through what would have to be done, so that a dry run names every package
// that would come along or go, and in which version. Indexes are refreshed by Apply alone, once in
// a run, and not at all while nothing needs installing. Where only a refresh could tell, as with
// pkg.latest, Check says that it does not know.
//
// What was done is read from the database afterwards, not from what was ordered.
package pkg

import (
	"context"
	"io"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Sources opens what a URL names, in an environment of the state tree: salt://, http:// and so on.
type Sources interface {
	Open(ctx context.Context, url, env string) (io.ReadCloser, error)
}

// Functions are the functions of pkg.
func Functions(sources Sources) module.Table {
	foreseen := &planned{by: map[string]string{}}
	return module.Table{
		"installed":       func() module.Resource { return &installed{install: newInstall(), sources: sources, planned: foreseen} },
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
