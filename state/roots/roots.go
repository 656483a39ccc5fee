// Package roots finds files in the state tree and the pillar tree: it resolves salt://web/init.sls and the SLS name
// web.init to files of this host.
//
// A tree has environments, each with an ordered list of directories. The first directory that contains a path wins,
// so that files of the service override those of base. An environment is listed once per run, when a glob or
// cp.list_states first needs the list.
package roots

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Files is the part of host.Files with which a tree is read.
type Files interface {
	Stat(path string) (host.Info, error)
	Lstat(path string) (host.Info, error)
	ReadFile(path string) ([]byte, error)
	ReadDir(path string) ([]string, error)
}

// Env is an environment with its directories, the first one first.
type Env struct {
	Name string
	Dirs []string
}

// Roots is a tree. It is safe for concurrent use.
type Roots struct {
	files Files
	envs  []Env

	mu     sync.Mutex
	lists  map[string]listing  // by environment
	states map[string][]string // SLS names by environment
}

// listing has the files and folders of an environment, sorted.
type listing struct{ files, folders []string }

// New returns a tree of environments. The environment base comes first, as in Salt.
func New(files Files, envs ...Env) *Roots {
	envs = slices.Clone(envs)
	structsort.Func(envs, func(a, b Env) int { return baseFirst(b.Name) - baseFirst(a.Name) })
	return &Roots{files: files, envs: envs, lists: map[string]listing{}, states: map[string][]string{}}
}

func baseFirst(name string) int {
	if name == "base" {
		return 1
	}
	return 0
}

// Envs lists the environments, base first.
func (r *Roots) Envs() []string {
	names := make([]string, len(r.envs))
	for i, e := range r.envs {
		names[i] = e.Name
	}
	return names
}

// Has reports whether there is such an environment.
func (r *Roots) Has(env string) bool { return slices.Contains(r.Envs(), env) }

// Dirs lists the directories of an environment.
func (r *Roots) Dirs(env string) []string {
	for _, e := range r.envs {
		if e.Name == env {
			return e.Dirs
		}
	}
	return nil
}

// Find returns the file on the host that a path of the tree means. A path never leaves its tree. A file that cannot be
// read is an error, not absent.
func (r *Roots) Find(env, name string) (file string, ok bool, err error) {
	for _, dir := range r.Dirs(env) {
		if file, ok, err := r.findIn(dir, name); ok || err != nil {
			return file, ok, err
		}
	}
	return "", false, nil
}

// FindAll does the same as Find in each root of an environment, in their order.
func (r *Roots) FindAll(env, name string) (files []string, err error) {
	for _, dir := range r.Dirs(env) {
		file, ok, err := r.findIn(dir, name)
		if err != nil {
			return nil, err
		}
		if ok {
			files = append(files, file)
		}
	}
	return files, nil
}

func (r *Roots) findIn(dir, name string) (file string, ok bool, err error) {
	name, ok = inside(name)
	if !ok {
		return "", false, nil
	}
	file = path.Join(dir, name)
	info, found, err := r.look(file)
	switch {
	case err != nil:
		return "", false, err
	case found && info.IsRegular():
		return file, true, nil
	case found && strings.HasSuffix(name, ".sls"):
		return "", false, diag.Include.Hint(fmt.Errorf("%s is a %s, and an SLS file was expected", file, kindOf(info)),
			"remove it or give it another name")
	}
	return "", false, nil
}

// ReadFile reads a file that Find or FindAll returned. It refuses a file that an unprivileged user can change who does
// not control the whole directory of the tree: root acts on the files of a tree.
func (r *Roots) ReadFile(file string) ([]byte, error) {
	data, err := r.files.ReadFile(file)
	if err == nil {
		err = r.CheckTrusted(file)
	}
	return data, err
}

// CheckTrusted returns the error with which ReadFile would refuse a file, for a file that is read in another way.
func (r *Roots) CheckTrusted(file string) error { return host.CheckTrusted(r.files, file, r.Top(file)) }

// Top returns the directory of the tree that a file is in, or "".
func (r *Roots) Top(file string) string {
	top := ""
	for _, e := range r.envs {
		for _, dir := range e.Dirs {
			if strings.HasPrefix(file, strings.TrimRight(dir, "/")+"/") && len(dir) > len(top) {
				top = dir
			}
		}
	}
	return top
}

// look returns the description of the file at a path, following links.
func (r *Roots) look(file string) (info host.Info, found bool, err error) {
	info, err = r.files.Stat(file)
	found, err = walk.Found(err)
	if err == nil && !found && strings.HasSuffix(file, ".sls") {
		err = r.leadsNowhere(file)
	}
	if err != nil {
		return info, false, diag.Include.Hint(fmt.Errorf("looking for a file of the tree: %w", err), "%s", hintFor(err,
			file))
	}
	return info, found, nil
}

// leadsNowhere returns an error for an SLS file that is a link to a missing file.
func (r *Roots) leadsNowhere(file string) error {
	info, err := r.files.Lstat(file)
	if found, err := walk.Found(err); err != nil || !found || !info.IsLink() {
		return err
	}
	return fmt.Errorf("%s is a link to a file that does not exist", file)
}

// hintFor returns the hint for a file that cannot be read.
func hintFor(err error, file string) string {
	if errors.Is(err, fs.ErrPermission) {
		return "give the agent's user the right to read " + file + " and to search the directories above it"
	}
	return "look at it with ls -l and namei -l: " + file
}

func kindOf(info host.Info) string {
	if info.IsDir() {
		return "directory"
	}
	return "device, pipe or socket"
}

// FindDir returns the directories of all roots that have a path.
func (r *Roots) FindDir(env, name string) (dirs []string, err error) {
	name, ok := inside(name)
	if !ok {
		return nil, nil
	}
	for _, dir := range r.Dirs(env) {
		info, found, err := r.look(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if found && info.IsDir() {
			dirs = append(dirs, path.Join(dir, name))
		}
	}
	return dirs, nil
}

// inside cleans a path of the tree, and reports whether it stays in the tree.
func inside(name string) (string, bool) {
	clean := path.Clean("/" + name)[1:]
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", false
		}
	}
	return clean, clean != "" && !strings.ContainsRune(name, 0)
}

// Read returns the content of a file and its path on the host. Its error wraps fs.ErrNotExist if no directory of the
// environment has the file.
func (r *Roots) Read(env, name string) (data []byte, file string, err error) {
	file, ok, err := r.Find(env, name)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		return nil, "", fmt.Errorf("salt://%s: %w in environment %s", name, fs.ErrNotExist, env)
	}
	data, err = r.ReadFile(file)
	return data, file, err
}

// FindSLS returns the path of the tree that an SLS name means: a/b.sls or a/b/init.sls for a.b, and a/init.sls for
// "a.".
func (r *Roots) FindSLS(env, sls string) (name string, ok bool, err error) {
	base := strings.ReplaceAll(sls, ".", "/")
	names := []string{base + ".sls", base + "/init.sls"}
	if directory, ok := strings.CutSuffix(base, "/"); ok {
		names = []string{directory + "/init.sls"}
	}
	for _, name := range names {
		if _, ok, err := r.Find(env, name); ok || err != nil {
			return name, ok, err
		}
	}
	return "", false, nil
}

// Files lists all files of an environment, sorted.
func (r *Roots) Files(env string) ([]string, error) {
	l, err := r.list(env)
	return l.files, err
}

// Folders lists all directories inside those of an environment, sorted.
func (r *Roots) Folders(env string) ([]string, error) {
	l, err := r.list(env)
	return l.folders, err
}

func (r *Roots) list(env string) (listing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done, ok := r.lists[env]; ok {
		return done, nil
	}
	l := &lister{files: r.files, seen: map[host.FileID]bool{}}
	for _, dir := range r.Dirs(env) {
		if err := l.walk(dir, ""); err != nil {
			return listing{}, fmt.Errorf("listing environment %s: %w", env, err)
		}
	}
	slices.Sort(l.found.files)
	slices.Sort(l.found.folders)
	r.lists[env] = listing{files: slices.Compact(l.found.files), folders: slices.Compact(l.found.folders)}
	return r.lists[env], nil
}

// lister walks a directory and follows links. It enters a loop once.
type lister struct {
	files Files
	found listing
	seen  map[host.FileID]bool // directories on the way down
}

func (l *lister) walk(dir, prefix string) error {
	info, err := l.files.Stat(dir)
	if found, err := walk.Found(err); err != nil || !found || l.seen[info.ID()] {
		return err
	}
	l.seen[info.ID()] = true
	defer delete(l.seen, info.ID())
	names, err := l.files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.visit(path.Join(dir, name), path.Join(prefix, name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) visit(file, name string) error {
	info, err := l.files.Stat(file)
	if found, err := walk.Found(err); err != nil || !found { // the target of a link may be missing
		return err
	}
	if info.IsDir() {
		l.found.folders = append(l.found.folders, name)
		return l.walk(file, name)
	}
	l.found.files = append(l.found.files, name)
	return nil
}

// States lists the names of all SLS files of an environment, sorted.
func (r *Roots) States(env string) ([]string, error) {
	files, err := r.Files(env)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if names, ok := r.states[env]; ok {
		return names, nil
	}
	names := []string{}
	for _, f := range files {
		if base, ok := strings.CutSuffix(f, ".sls"); ok {
			names = append(names, strings.ReplaceAll(strings.TrimSuffix(base, "/init"), "/", "."))
		}
	}
	slices.Sort(names)
	r.states[env] = slices.Compact(names)
	return r.states[env], nil
}
