package external

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
)

// mostBytes is the maximum size of the files of one repository or bucket. It is less than what the host keeps of the
// output of a program.
const mostBytes = 12 << 20

// fetch adds the files of a branch to memory. The repository is fetched into a temporary directory that only the
// agent's user can read, without its history.
func (w World) fetch(ctx context.Context, r *remote, files *memory) (err error) {
	git := w.gitProgram(r)
	if ready, err := git.Ready(w.Host); err != nil || !ready {
		return errors.Join(err, notReady(ready))
	}
	dir, remove, err := w.Host.TempDir("pillar-*", 0o700)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if _, err := git.Ask(ctx, w.Host, "init", "--quiet", "--bare", "--template=", dir); err != nil {
		return err
	}
	if at := r.local(); at != "" {
		if err := w.Host.CheckFetched(at); err != nil {
			return err
		}
	}
	if err := r.fetchInto(ctx, w.Host, git, dir); err != nil {
		return err
	}
	entries, err := r.entries(ctx, w.Host, git, dir)
	if err != nil {
		return err
	}
	return r.contents(ctx, w.Host, git, dir, entries, files)
}

// local returns the path of a repository of this host as git reads it, "" for one of a server.
func (r *remote) local() string {
	scheme, rest, found := strings.Cut(r.url, "://")
	switch {
	case !found && path.IsAbs(r.url):
		return r.url
	case scheme != "file":
		return ""
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return path.Clean("/" + rest)
}

func notReady(ready bool) error {
	if ready {
		return nil
	}
	return diag.Program.Hint(
		errors.New("there is no git on this host"), "install the package git in the image of the host")
}

// gitProgram returns git with the access to one repository. ssh connects only to servers whose keys root knows.
func (w World) gitProgram(r *remote) program.Program {
	g := program.Git{SSH: "ssh -o BatchMode=yes -o ConnectTimeout=30", User: r.user, Password: r.password}
	if r.key != "" {
		g.SSH += " -o IdentitiesOnly=yes" + program.IdentityOption(r.key)
	}
	if r.insecure {
		g.Settings = []string{"http.sslVerify", "false"}
	}
	p := g.Program()
	p.Env = append(p.Env, "GIT_ALLOW_PROTOCOL=https:http:ssh:file:git",
		"GIT_HTTP_LOW_SPEED_LIMIT=1000", "GIT_HTTP_LOW_SPEED_TIME=60")
	return p
}

// fetchInto fetches the newest commit of the branch, or of the fallback.
func (r *remote) fetchInto(ctx context.Context, h *host.Host, git program.Program, dir string) error {
	fetch := func(branch string) error {
		_, err := git.Ask(ctx, h, "--git-dir="+dir, "fetch", "--quiet", "--depth=1", "--no-tags", "--", r.url, branch)
		return err
	}
	err := fetch(r.branch)
	if err != nil && r.fallback != "" && strings.Contains(err.Error(), "couldn't find remote ref") {
		err = fetch(r.fallback)
	}
	var ended *program.Error
	if errors.As(err, &ended) && diag.HintOf(err) == "" {
		return diag.External.Hint(err, "run `git ls-remote %s` on this host as root; the branch has to be in its output",
			r.url)
	}
	return err
}

// entry is a file or link of a commit.
type entry struct {
	id, file string // file is its path below root
	link     bool
	size     int
}

// entries lists the files and links of the fetched commit below the root. Submodules are left out.
func (r *remote) entries(ctx context.Context, h *host.Host, git program.Program, dir string) ([]entry, error) {
	args := []string{"--git-dir=" + dir, "ls-tree", "-r", "-l", "-z", "--full-tree", "FETCH_HEAD", "--"}
	if r.root != "" {
		args = append(args, r.root+"/")
	}
	list, err := git.Ask(ctx, h, args...)
	if err != nil {
		return nil, err
	}
	all, total := parseEntries(list, r.root)
	if total > mostBytes {
		return nil, diag.External.Hint(fmt.Errorf("its files have %d MiB, and at most %d MiB are allowed", total>>20,
			mostBytes>>20), "put the pillar into a repository of its own, or set root to its directory")
	}
	if r.root != "" && len(all) == 0 {
		return nil, diag.External.Hint(fmt.Errorf("there is no directory %s in it", r.root), "correct root")
	}
	return all, nil
}

// parseEntries parses the output of git ls-tree, and returns the total size of the files.
func parseEntries(list, root string) (all []entry, total int) {
	for line := range strings.SplitSeq(list, "\x00") {
		about, file, _ := strings.Cut(line, "\t")
		f := strings.Fields(about) // mode, type, object, size
		if len(f) != 4 || f[1] != "blob" {
			continue
		}
		size, err := strconv.Atoi(f[3])
		if err != nil { // no version of git prints a file without its size
			size = mostBytes + 1
		}
		total += size
		all = append(all, entry{id: f[2], file: strings.TrimPrefix(file, root+"/"), link: f[0] == "120000", size: size})
	}
	return all, total
}

// contents adds the contents of entries to memory.
func (r *remote) contents(ctx context.Context, h *host.Host, git program.Program, dir string, entries []entry,
	files *memory) error {
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		git.Stdin += e.id + "\n"
	}
	out, err := git.Ask(ctx, h, "--git-dir="+dir, "cat-file", "--batch")
	if err != nil {
		return err
	}
	for _, e := range entries {
		_, rest, _ := strings.Cut(out, "\n") // the object, its type and its size
		if len(rest) < e.size+1 {
			return fmt.Errorf("git cat-file: the output ends before %s", e.file)
		}
		n := &node{content: []byte(rest[:e.size])}
		if e.link {
			n = &node{link: rest[:e.size]}
		}
		if out = rest[e.size+1:]; !files.put(path.Join(r.place, r.mount, e.file), n) {
			return fmt.Errorf("%s: %w", e.file, fs.ErrInvalid)
		}
	}
	return nil
}
