package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// access holds the arguments for access to a repository.
type access struct {
	User           string   `sls:"user"`
	Password       any      `sls:"password"` // no effect: only Windows requires the password of the user
	Identity       []string `sls:"identity"` // private keys for ssh
	HTTPSUser      string   `sls:"https_user"`
	HTTPSPass      string   `sls:"https_pass"`
	OutputEncoding any      `sls:"output_encoding"`
}

// awaits returns a prerequisite that does not exist: git, the user or a key; "" if there is none.
func (a access) awaits(h *host.Host) (string, error) {
	if ok, err := a.git().Ready(h); err != nil || !ok {
		return "git", err
	}
	if a.User != "" {
		if _, ok, err := h.Accounts.User(a.User); err != nil || !ok {
			return "user " + a.User, err
		}
	}
	for _, key := range a.Identity {
		if strings.Contains(key, "://") {
			return "", diag.SSH.Hint(fmt.Errorf("identity %s is not a file of the host", key),
				"put the key there with file.managed, mode 0600, and name its path")
		}
		if _, err := h.Files.Stat(key); errors.Is(err, fs.ErrNotExist) {
			return "the key " + key, nil
		}
	}
	return "", nil
}

// git returns the git program without prompts on a terminal.
func (a access) git() program.Program { return a.program("", "") }

func (a access) program(user, password string) program.Program {
	g := program.Git{User: user, Password: password}
	if len(a.Identity) > 0 {
		g.SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o IdentitiesOnly=yes"
		for _, key := range a.Identity {
			g.SSH += program.IdentityOption(key)
		}
	}
	p := g.Program()
	p.RunAs = a.User
	return p
}

// reaching returns the git program with the credentials for a URL.
func (a access) reaching(rawURL string) program.Program {
	user, password := a.HTTPSUser, a.HTTPSPass
	if _, name, secret := redact.Login(rawURL); strings.HasPrefix(strings.ToLower(rawURL), "http") && name+secret != "" {
		if secret == "" { // the URL has only a name, such as a token
			secret = password
		}
		user, password = name, secret
	}
	return a.program(user, password)
}

// address returns a URL without its user name and password.
func address(rawURL string) string {
	without, _, _ := redact.Login(rawURL)
	return without
}

// refs maps the full names of a repository's branches and tags to commits.
type refs map[string]string

// unreachable returns the hint for a repository that git cannot read.
func unreachable(err error) string {
	if strings.Contains(err.Error(), "detected dubious ownership") {
		return "git reads a repository of this host only as its owner: have the state's user own it, run the state as its " +
			"owner, or name it in that user's safe.directory"
	}
	return "check its URL, the network, and who may read it (identity, https_user)"
}

// missingHere marks err as caused by a missing directory if the URL names a repository on this host that does not
// exist, since an earlier state may create it.
func missingHere(h *host.Host, rawURL string, err error) error {
	dir := rawURL
	if u, parseErr := url.Parse(rawURL); parseErr == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		dir = u.Path
	}
	if !path.IsAbs(dir) {
		return err
	}
	dir = path.Clean(dir)
	for _, name := range []string{dir, dir + ".git"} { // git tries both names
		if _, statErr := h.Files.Lstat(name); !errors.Is(statErr, fs.ErrNotExist) {
			return err
		}
	}
	return host.WithMissing(err, host.ADirectory, dir)
}

// remoteRefs returns the branches and tags of a remote repository.
func (a access) remoteRefs(ctx context.Context, h *host.Host, rawURL string) (refs, error) {
	out, err := a.reaching(rawURL).Ask(ctx, h, "ls-remote", "--", address(rawURL))
	if err != nil {
		return nil,
			missingHere(h, rawURL, diag.Git.Hint(fmt.Errorf("the repository %s cannot be reached: %w", address(rawURL), err),
				"%s", unreachable(err)))
	}
	found := refs{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 {
			found[f[1]] = f[0]
		}
	}
	return found, nil
}

var (
	fullHash  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}$|^[0-9a-f]{64}$`) })
	shortHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{5,63}$`) })
)

// find returns the commit of a revision; kind is HEAD, branch, tag or commit, or "" if the repository does not have the
// revision. known is false if the revision may be the hash of a commit that is at no branch or tag.
func (r refs) find(rev string) (commit, kind string, known bool) {
	switch {
	case rev == "HEAD":
		return r["HEAD"], "HEAD", r["HEAD"] != ""
	case r["refs/heads/"+rev] != "":
		return r["refs/heads/"+rev], "branch", true
	case r["refs/tags/"+rev+"^{}"] != "":
		return r["refs/tags/"+rev+"^{}"], "tag", true
	case r["refs/tags/"+rev] != "":
		return r["refs/tags/"+rev], "tag", true
	case r[rev] != "":
		return r[rev], "commit", true
	case fullHash().MatchString(rev):
		return rev, "commit", true
	case shortHash().MatchString(rev):
		for _, hash := range r {
			if strings.HasPrefix(hash, rev) {
				return hash, "commit", true
			}
		}
		return "", "commit", false
	}
	return "", "", false
}

// missing returns the error for a revision that does not exist.
func (r refs) missing(rev, rawURL string) error {
	var names []string
	for ref := range r {
		if name, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			names = append(names, name)
		} else if name, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			names = append(names, strings.TrimSuffix(name, "^{}"))
		}
	}
	if len(r) == 0 {
		return diag.Git.Hint(fmt.Errorf("the repository %s is empty", address(rawURL)), "push a commit to it first")
	}
	hint := diag.DidYouMean(rev, names)
	if hint == "" {
		hint = "name a branch, a tag or a commit of it"
	}
	return diag.Git.Hint(fmt.Errorf("the repository %s has no revision %s", address(rawURL), rev), "%s", hint)
}

// place is the kind of the file at the path of a checkout.
type place int

const (
	nothing  place = iota // nothing, or an empty directory
	checkout              // a repository, bare or not
	occupied              // something else
)

// placeOf returns the kind of the file at a path.
func placeOf(h *host.Host, dir string) (place, error) {
	if !path.IsAbs(dir) {
		return 0, diag.Argument.Hint(fmt.Errorf("the path %q is not absolute", dir), "start it with a slash")
	}
	info, err := h.Files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	if err != nil || !info.IsDir() {
		return occupied, err
	}
	for _, marks := range [][]string{{".git"}, {"HEAD", "objects", "refs"}} {
		found := 0
		for _, name := range marks {
			if _, err := h.Files.Stat(path.Join(dir, name)); err == nil {
				found++
			}
		}
		if found == len(marks) {
			return checkout, nil
		}
	}
	names, err := h.Files.ReadDir(dir)
	if len(names) > 0 {
		return occupied, err
	}
	return nothing, err
}

// bareAt reports whether a repository is bare.
func bareAt(h *host.Host, dir string) bool {
	_, err := h.Files.Stat(path.Join(dir, ".git"))
	return errors.Is(err, fs.ErrNotExist)
}

// inTheWay returns the error for something else than a repository at a path. force is the argument that removes it.
func inTheWay(h *host.Host, dir, force string) error {
	err := diag.Path.Hint(fmt.Errorf("%s exists and is not a repository", dir),
		"set %s: True to remove what is in it, or name another path", force)
	return takenBy(h, dir, err)
}

// takenBy returns an Obstacle with the text of err for what is at the path of a repository.
func takenBy(h *host.Host, dir string, err error) error {
	if h.Obstructed(dir) != nil {
		return host.WithObstacle(dir, err)
	}
	return host.Unsuitable(dir, err)
}

// ofCheckout returns an error of commands that use a checkout. If it was there before the state, its content may be the
// reason, since the remote repository has what the state declares.
func ofCheckout(was place, dir string, err error) error {
	if err == nil || was != checkout {
		return err
	}
	return host.Unsuitable(dir, err)
}

// empty removes the content of a directory, or a file at its path.
func empty(h *host.Host, dir string) error {
	info, err := h.Files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return h.Files.Remove(dir)
	}
	names, err := h.Files.ReadDir(dir)
	for _, name := range names {
		if err := h.Files.RemoveAll(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return err
}

// in returns the arguments of git for a checkout. git refuses checkouts of other users; see actFor.
func in(dir string, args ...string) []string { return append([]string{"-C", dir}, args...) }

// answer returns the output of git for a checkout. It returns "" if git exits with 1 or 128, as for a revision
// that does not exist.
func (a access) answer(ctx context.Context, h *host.Host, dir string, args ...string) (string, error) {
	out, err := a.git().Ask(ctx, h, in(dir, args...)...)
	if program.EndedWith(err, 1, 128) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}
