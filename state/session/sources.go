package session

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/ahead"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
)

// Source is a file that was opened. Mode is that of a file of a tree or of the host; 0 for any other.
type Source struct {
	io.ReadCloser
	Mode fs.FileMode
}

// Entry is one file, directory or link of a tree.
type Entry struct {
	Path   string // below the directory that is listed
	Dir    bool
	Target string // of a link
	Place  string // of a link: its path on the host
}

// Sources opens the sources that states name: salt://path of the state tree, file:///path or /path of the host, and
// other URLs.
type Sources struct {
	tree   *roots.Roots
	trees  host.Files // the files that contain the tree
	host   *host.Host
	remote Remote
	ahead  *ahead.Downloads // what later states will open; nil for none

	releases []string // directories of the host; the owner of a whole release is trusted with its files
}

// home returns the Files in which the path of a place is opened.
func (s *Sources) home(ctx context.Context, p place) host.Files {
	if p.scheme == "salt" {
		return s.trees
	}
	return s.host.FilesFor(ctx)
}

// place is the parsed URL of a source.
type place struct {
	scheme string // salt, file, or another
	path   string // in the tree, or on the host
	env    string
}

func parsePlace(rawURL, env string) place {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	switch {
	case !ok:
		return place{scheme: "file", path: rawURL}
	case scheme == "file":
		return place{scheme: "file", path: path.Clean("/" + strings.TrimPrefix(rest, "localhost/"))}
	case scheme != "salt":
		return place{scheme: scheme, path: rawURL}
	}
	rest, query, _ := strings.Cut(rest, "?")
	if named, err := url.ParseQuery(query); err == nil && named.Get("saltenv") != "" {
		env = named.Get("saltenv")
	}
	return place{scheme: "salt", path: strings.TrimPrefix(rest, "|"), env: env}
}

// treePath returns the path in the state tree that a salt:// URL names. The result for any other URL is not a path
// in the tree.
func treePath(rawURL string) string { return parsePlace(rawURL, "").path }

// Local returns the path of the file to which a URL of a tree or of the host refers. It reports false if there is none.
func (s *Sources) Local(rawURL, env string) (string, bool, error) {
	switch p := parsePlace(rawURL, env); p.scheme {
	case "salt":
		return s.tree.Find(p.env, p.path)
	case "file":
		return p.path, true, nil
	}
	return "", false, nil
}

// CheckTrusted implements file.Sources.
func (s *Sources) CheckTrusted(rawURL, env string) error {
	p := parsePlace(rawURL, env)
	name, ok, err := s.Local(rawURL, env)
	if err != nil || !ok || !path.IsAbs(name) {
		return err
	}
	return s.checkTrusted(p.scheme, name)
}

// checkTrusted returns an error if an unprivileged user can change a file of the host or of a tree.
func (s *Sources) checkTrusted(scheme, name string) error {
	if scheme == "salt" {
		return s.tree.CheckTrusted(name)
	}
	return host.CheckTrusted(s.host.Files, name, s.releases...)
}

// received returns an error if a user controls the content of a file that is to be copied to a path that the user does
// not control: see host.Received.
func (s *Sources) received(ctx context.Context, scheme, name string) error {
	if scheme != "salt" {
		return s.host.Received(ctx, name, s.releases...)
	}
	return s.ofTrees().Received(ctx, name, s.tree.Top(name))
}

// ReceivedFrom does the same as received, for the file name to which a URL refers.
func (s *Sources) ReceivedFrom(ctx context.Context, rawURL, name string) error {
	return s.received(ctx, parsePlace(rawURL, "").scheme, name)
}

// Missing returns the error for a URL that refers to no file of the tree.
func (s *Sources) Missing(rawURL, env string) error { return s.missing(parsePlace(rawURL, env)) }

// ofTrees returns the host with the files that contain the state tree.
func (s *Sources) ofTrees() *host.Host {
	h := *s.host
	h.Files = s.trees
	return &h
}

// ReceivedLink implements file.Sources.
func (s *Sources) ReceivedLink(ctx context.Context, place string) error {
	return s.ofTrees().ReceivedLink(ctx, place, s.tree.Top(place))
}

// Open implements file.Sources.
func (s *Sources) Open(ctx context.Context, rawURL, env string) (Source, error) {
	p := parsePlace(rawURL, env)
	if p.scheme != "salt" && p.scheme != "file" {
		body, err := s.fetch(ctx, p)
		return Source{ReadCloser: body}, err
	}
	name, ok, err := s.Local(rawURL, env)
	if err != nil {
		return Source{}, err
	}
	if !ok {
		return Source{}, s.missing(p)
	}
	files := s.home(ctx, p)
	info, err := files.Stat(name)
	if err != nil {
		return Source{}, err
	}
	if err := s.received(ctx, p.scheme, name); err != nil {
		return Source{}, err
	}
	body, err := files.Open(name)
	return Source{ReadCloser: body, Mode: info.Mode.Perm()}, err
}

func (s *Sources) missing(p place) error {
	if p.scheme == "file" {
		return host.Gone(p.path, fs.ErrNotExist)
	}
	err := fmt.Errorf("%w in environment %s", fs.ErrNotExist, p.env)
	if dirs, dirErr := s.tree.FindDir(p.env, p.path); dirErr != nil || len(dirs) > 0 {
		if dirErr != nil {
			return dirErr
		}
		return diag.Download.Hint(fmt.Errorf("it is a directory: %w", err), "file.recurse takes a directory")
	}
	files, listErr := s.tree.Files(p.env)
	if listErr != nil {
		return err
	}
	return diag.Download.Hint(err, "%s", diag.DidYouMean(p.path, files))
}

func (s *Sources) fetch(ctx context.Context, p place) (io.ReadCloser, error) {
	if s.remote == nil {
		return nil, diag.Download.Hint(fmt.Errorf("%s:// is not fetched here", p.scheme),
			"put the file into the state tree and write salt://")
	}
	if body, ok := s.ahead.Open(ctx, p.path); ok {
		return body, nil
	}
	return s.remote.Open(ctx, p.path)
}

// First implements file.Sources.
func (s *Sources) First(ctx context.Context, urls []string, env string) (int, error) {
	for i, rawURL := range urls {
		there, err := s.there(ctx, rawURL, env)
		if err != nil {
			return 0, err
		}
		if there {
			return i, nil
		}
	}
	return 0, fs.ErrNotExist
}

func (s *Sources) there(ctx context.Context, rawURL, env string) (bool, error) {
	p := parsePlace(rawURL, env)
	switch p.scheme {
	case "salt":
		return s.inTree(p)
	case "file":
		_, err := s.host.FilesFor(ctx).Stat(p.path)
		return walk.Found(err)
	}
	body, err := s.fetch(ctx, p)
	if found, err := walk.Found(err); err != nil || !found {
		return false, err
	}
	return true, body.Close()
}

// inTree reports whether the state tree has a file or a directory.
func (s *Sources) inTree(p place) (bool, error) {
	_, there, err := s.tree.Find(p.env, p.path)
	if there || err != nil {
		return there, err
	}
	dirs, err := s.tree.FindDir(p.env, p.path)
	return len(dirs) > 0, err
}

// List implements file.Sources.
func (s *Sources) List(ctx context.Context, rawURL, env string) ([]Entry, error) {
	p := parsePlace(rawURL, env)
	if p.scheme != "salt" {
		return nil, diag.Download.Hint(fmt.Errorf("%s is not a directory of the state tree", rawURL), "write salt://")
	}
	dirs, err := s.tree.FindDir(p.env, p.path)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fs.ErrNotExist
	}
	l := &treeLister{files: s.trees, seen: map[string]bool{}, above: map[host.FileID]bool{}}
	for _, dir := range dirs {
		if err := l.walk(ctx, dir, ""); err != nil {
			return nil, err
		}
	}
	structsort.Func(l.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return l.entries, nil
}

// treeLister lists a directory that may be in several roots. An entry of an earlier root hides one of a later root.
type treeLister struct {
	files   host.Files
	entries []Entry
	seen    map[string]bool
	above   map[host.FileID]bool // directories being visited, to detect links that lead back up
}

func (l *treeLister) walk(ctx context.Context, dir, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := l.files.Stat(dir)
	if err != nil || l.above[info.ID()] {
		return err
	}
	l.above[info.ID()] = true
	defer delete(l.above, info.ID())
	names, err := l.files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.visit(ctx, path.Join(dir, name), path.Join(prefix, name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *treeLister) visit(ctx context.Context, name, rel string) error {
	entry := Entry{Path: rel}
	info, err := l.files.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsLink() {
		if entry.Target, err = l.files.Readlink(name); err != nil {
			return err
		}
		entry.Place = name
		followed, err := l.files.Stat(name)
		if found, err := walk.Found(err); err != nil || !found {
			return err // a broken link has no content
		}
		info = followed
	}
	entry.Dir = info.IsDir()
	if !l.seen[rel] {
		l.seen[rel] = true
		l.entries = append(l.entries, entry)
	}
	if entry.Dir {
		return l.walk(ctx, name, rel)
	}
	return nil
}
