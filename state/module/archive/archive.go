// Package archive implements archive.extracted, which extracts an archive into a directory of the host.
//
// Check lists the archive and compares the list with the directory. Apply extracts only if something is missing
// or overwrite is set. Only Apply fetches a remote archive into the cache; until then, a dry run reports that
// the changes are unknown.
//
// If a hash is given, an archive is verified before it is unpacked. An archive cannot write outside of its
// directory: names that lead out of it, entries below a link, devices, links that lead out and archives beyond
// the limits of the state (see limits) are refused before anything is written. The content is written to a
// temporary directory in the target and renamed when it is complete, relative to open directories and without
// following links. A refused archive, a full disk or an interrupted run therefore leave the target unchanged.
package archive

import (
	"context"
	"io"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Sources locates archives.
type Sources interface {
	Archive(ctx context.Context, w Wanted) (Source, error)
}

// Wanted holds the arguments that name an archive.
type Wanted struct {
	Source         any
	Hash, HashName string
	SkipVerify     bool
	Env            string
	Name           string
}

// Source says where an archive is and how to read it.
type Source struct {
	Shown    string // its URL without a password
	Path     string // a file on the host; "" if the archive must be fetched to Cache
	Cache    string
	Notes    string // a directory on the host for notes about extracted archives
	Sum      string // the expected hash in hex, "" for any
	Open     func(ctx context.Context) (io.ReadCloser, error)
	Verified func(r io.Reader) io.Reader
}

// Functions returns the functions of archive.
func Functions(sources Sources) module.Table {
	return module.Table{
		"extracted": func() module.Resource {
			return &extracted{EnforceToplevel: true, ExtractPerms: true, KeepSource: true, sources: sources}
		},
	}
}
