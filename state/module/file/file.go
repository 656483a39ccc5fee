// Package file holds the states of files: file.managed and its kin.
//
// They are all the same in one respect: what a file shall hold, and to whom it shall belong, is
// worked out in full before anything is touched. Check gathers the content (from the state tree,
// the web, a template, the pillar, or the file itself with an edit made), compares it with what is
// there, and keeps the difference; Apply makes one write of it, which replaces the file at once or
// not at all. So what a dry run shows is what a run does, and no failure leaves half a file.
//
// Content is compared and written as a stream where it is big. Only what is small enough for a
// difference by line is ever held in memory.
//
// What comes from outside of the host arrives through the interfaces of Inputs. The names of
// arguments and the shape of changes are Salt's; where a dry run of Salt's says something else than
// its real run, ours says what the real one does.
package file

import (
	"context"
	"io"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Inputs are what file states need beside the host.
type Inputs struct {
	Sources   Sources
	Templates Templates
	Pillar    Lookup
	Grains    Lookup
	// Secret reports whether a text has something in it that nobody may see, such as a decrypted
	// pillar value. A difference that has is not shown. nil means that nothing is secret.
	Secret func(text string) bool
	// Cache is where the host keeps backups and fetched files; DefaultCache if "".
	Cache string
}

// DefaultCache is the directory of backups (backup: minion), below file_backup, and of the files
// that file.cached fetches, below files.
const DefaultCache = "/var/cache/corpus"

// Sources are where content comes from. A URL is salt://path, with an environment of its own as
// salt://path?saltenv=name, or anything else the run can fetch, or a path of the host.
type Sources interface {
	// First is the index of the first URL that is there, a file or a directory. If none is, the
	// error wraps fs.ErrNotExist. env is the environment of salt:// URLs that do not name one.
	First(ctx context.Context, urls []string, env string) (int, error)
	// Open opens a file. If it is not there, the error wraps fs.ErrNotExist.
	Open(ctx context.Context, url, env string) (Source, error)
	// Vouched refuses a source on this host that an unprivileged user can change: nothing of it may be rendered by root,
	// or become a program that runs as another user.
	Vouched(url, env string) error
	// List lists all that is below a directory of the state tree, at every depth. Links that lead
	// to directories are listed as links and followed as well.
	List(ctx context.Context, url, env string) ([]Entry, error)
	// ReceivedLink refuses a link that List found whose text a user controls, in the place of what is not that user's: see
	// host.Received. place is where the link lies.
	ReceivedLink(ctx context.Context, place string) error
}

// Source is an open file.
type Source struct {
	io.ReadCloser
	Mode fs.FileMode // permission bits, for mode: keep; 0 where there are none, as on the web

	content io.Reader // what ReadCloser reads, with what is known of the file
}

// Content implements host.Wrapped.
func (s Source) Content() io.Reader {
	if s.content != nil {
		return s.content
	}
	return s.ReadCloser
}

// Entry is something below a directory of the state tree.
type Entry struct {
	Path   string // relative to the directory
	Dir    bool
	Target string // of a symbolic link, which may be a file or a directory as well; else ""
	Place  string // where a symbolic link lies on the host
}

// Templates render text.
type Templates interface {
	// Render renders a template. An error has the position in the template.
	Render(ctx context.Context, t Template) ([]byte, error)
}

// Template is a text to render.
type Template struct {
	Engine string // as template: names it, such as jinja
	Source string // its URL, or "" for text out of an SLS file
	Env    string
	Text   []byte
	Vars   *value.Map
}

// Lookup finds a value by a path such as a:b in the pillar or among the grains.
type Lookup func(path, delimiter string) (any, bool)

// family is what the functions of one table share.
type family struct {
	Inputs
	accumulated accumulators
}

// Functions are the functions of file. A table is good for one run, since file.accumulated hands
// text to the functions that come after it.
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
