// Package file implements file.managed and the other file states.
//
// All of them determine the content, owner and mode of a file before they change anything. Check gathers the
// content (from the state tree, the web, a template, the pillar, or the present file with an edit) and compares
// it with the file on the host. Apply then replaces the file with a single atomic write. A dry run therefore
// shows exactly what a run does, and no failure leaves an incomplete file.
//
// Large content is compared and written as a stream. Only content small enough for a line-by-line difference is
// held in memory.
//
// Everything that is not on the host comes through the interfaces in Inputs. The names of arguments and the form of
// changes are Salt's. Where Salt's dry run reports other changes than its real run, Check returns both (see
// module.Diff).
package file

import (
	"context"
	"io"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Inputs holds the dependencies of the file states other than the host.
type Inputs struct {
	Sources   Sources
	Templates Templates
	Pillar    Lookup
	Grains    Lookup
	// Secret reports whether a text contains a secret, such as a decrypted pillar value. A difference with one is
	// not shown. nil means that there are no secrets.
	Secret func(text string) bool
	// Cache is the directory for backups and fetched files. "" means DefaultCache.
	Cache string
}

// DefaultCache is the default of Inputs.Cache. Backups (backup: minion) are below its file_backup, files that
// file.cached fetches below its files and extrn_files.
const DefaultCache = "/var/cache/corpus"

// Sources gives access to the sources of content. A URL is salt://path (salt://path?saltenv=name for another
// environment), any other URL that the run can fetch, or a path of the host.
type Sources interface {
	// First returns the index of the first URL that exists, as a file or a directory. If none does, the error
	// wraps fs.ErrNotExist. env is the environment of salt:// URLs that name none.
	First(ctx context.Context, urls []string, env string) (int, error)
	// Open opens a file. If it does not exist, the error wraps fs.ErrNotExist.
	Open(ctx context.Context, url, env string) (Source, error)
	// CheckTrusted returns an error for a source on this host that an unprivileged user can change: it must not be
	// rendered by root or become a program that runs as another user.
	CheckTrusted(url, env string) error
	// List lists everything below a directory of the state tree. A link to a directory is listed as a link, and
	// its content is listed as well.
	List(ctx context.Context, url, env string) ([]Entry, error)
	// ReceivedLink returns an error if a link that List found must not be created, since an unprivileged user controls
	// its text and the new link belongs to another user; see host.Received. place is the path of the link in the state
	// tree.
	ReceivedLink(ctx context.Context, place string) error
}

// Source is an open file.
type Source struct {
	io.ReadCloser
	Mode fs.FileMode // permission bits, for mode: keep; 0 if the source has none, as on the web

	// content is the reader below ReadCloser that knows the size of the file; nil if it is ReadCloser itself.
	content io.Reader
}

// Content implements host.Wrapped.
func (s Source) Content() io.Reader {
	if s.content != nil {
		return s.content
	}
	return s.ReadCloser
}

// Entry is a file, directory or link below a directory of the state tree.
type Entry struct {
	Path   string // relative to the directory
	Dir    bool
	Target string // the target of a symbolic link, to a file or a directory; otherwise ""
	Place  string // the path of a symbolic link on the host
}

// Templates render text.
type Templates interface {
	// Render renders a template. Its errors have the position in the template.
	Render(ctx context.Context, t Template) ([]byte, error)
}

// Template is a text to render.
type Template struct {
	Engine string // the value of the template argument, such as jinja
	Source string // its URL, or "" for text from an SLS file
	Env    string
	Text   []byte
	Vars   *value.Map
}

// Lookup returns the value at a path such as a:b in the pillar or the grains.
type Lookup func(path, delimiter string) (any, bool)

// family is the state that the functions of one table share.
type family struct {
	Inputs
	accumulated accumulators
}

// Functions returns the functions of file. A table serves a single run, since file.accumulated passes text to
// later functions.
func Functions(in Inputs) module.Table {
	if in.Cache == "" {
		in.Cache = DefaultCache
	}
	f := &family{Inputs: in}
	return module.Table{
		"absent":             func() module.Resource { return &absent{} },
		"accumulated":        func() module.Resource { return &gathered{family: f} },
		"append":             func() module.Resource { return newAddition(f, false) },
		"blockreplace":       func() module.Resource { return newBlockReplace(f) },
		"cached":             func() module.Resource { return &cached{family: f} },
		"comment":            func() module.Resource { return newComment(f, false) },
		"copy":               func() module.Resource { return &duplicate{} },
		"decode":             func() module.Resource { return &decode{EncodingType: "base64", Checksum: "md5", family: f} },
		"directory":          func() module.Resource { return &directory{AllowSymlink: true, family: f} },
		"exists":             func() module.Resource { return &presence{wanted: true} },
		"hardlink":           func() module.Resource { return &hardlink{} },
		"keyvalue":           func() module.Resource { return newKeyValue(f) },
		"line":               func() module.Resource { return newLine(f) },
		"managed":            func() module.Resource { return newManaged(f) },
		"missing":            func() module.Resource { return &presence{} },
		"mknod":              func() module.Resource { return &node{} },
		"not_cached":         func() module.Resource { return &notCached{family: f} },
		"patch":              func() module.Resource { return &patch{family: f} },
		"prepend":            func() module.Resource { return newAddition(f, true) },
		"pruned":             func() module.Resource { return &pruned{} },
		"recurse":            func() module.Resource { return newRecurse(f) },
		"rename":             func() module.Resource { return &rename{} },
		"replace":            func() module.Resource { return newReplace(f) },
		"retention_schedule": func() module.Resource { return &retention{} },
		"serialize":          func() module.Resource { return &serialize{Create: true, ShowChanges: true, family: f} },
		"symlink":            func() module.Resource { return &symlink{} },
		"tidied":             func() module.Resource { return newTidied() },
		"touch":              func() module.Resource { return &touch{} },
		"uncomment":          func() module.Resource { return newComment(f, true) },
	}
}
