package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// sync makes the host ready for a project: its entry in the registry, its directories, user, default
// procedures and links. Doing it again does what is missing.
func (r *run) sync(ctx context.Context, pair ledger.Pair) error {
	follows, err := r.follows(pair, procedure.Sync)
	if err != nil || !r.only.Has(procedure.Sync) || r.entry == nil && !follows {
		return err
	}
	return r.record.Stage(procedure.Sync, pair.Service.Project, func() error {
		r.register(pair.Service.Project)
		if err := r.prepare(ctx); err != nil {
			return err
		}
		if pair.Service.Local == "" {
			return nil
		}
		written, err := procedure.WriteSkeleton(r.tree(pair), pair.Service.Project)
		if len(written) > 0 {
			r.record.Note("default procedures were written into %s: %s", procedure.Dir, strings.Join(written, ", "))
		}
		return err
	})
}

// register makes an entry where there is none.
func (r *run) register(name string) {
	if r.entry == nil {
		user := userName(name)
		r.entry = &ledger.Project{Name: name, User: user, Group: user}
	}
}

// userName is the account of a project: names of accounts are shorter and plainer than those of
// projects.
func userName(project string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, project)
	const suffix, longest = "-user", 32
	name = name[:min(len(name), longest-len(suffix))] + suffix
	if name[0] >= '0' && name[0] <= '9' {
		name = "p" + name[:len(name)-len(suffix)-1] + suffix
	}
	return name
}

// Where Salt's own tools find what projects bring.
const (
	projectStates  = "/srv/salt/makina-projects"
	projectPillars = "/srv/pillar/makina-projects"
)

// prepare lays out the project of the entry.
func (r *run) prepare(ctx context.Context) error {
	p := r.project(r.entry.Name)
	for _, dir := range []string{p.Releases(), p.Archives(), p.Data()} {
		if err := durable.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("laying out %s: %w", p.Name, err)
		}
	}
	if err := durable.MkdirAll(p.Pillar(), 0o700); err != nil {
		return fmt.Errorf("laying out %s: %w", p.Name, err)
	}
	if err := r.account(ctx); err != nil {
		return err
	}
	for _, l := range []struct{ dir, target string }{
		{projectStates, filepath.Join("..", "..", "projects", p.Name, "next", procedure.Dir)},
		{projectPillars, filepath.Join("..", "..", "projects", p.Name, "pillar")},
	} {
		if err := r.wire(filepath.Join(r.Layout.Path(l.dir), p.Name), l.target); err != nil {
			return err
		}
	}
	return nil
}

// wire makes a link, and leaves what is no link to whoever made it.
func (r *run) wire(link, target string) error {
	info, err := os.Lstat(link)
	found, err := walk.Found(err)
	if err != nil {
		return err
	}
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if found && info.Mode()&fs.ModeSymlink == 0 {
		r.record.Note("%s is no link and stays; %s is not found there", r.Layout.Inside(link), r.entry.Name)
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("linking %s: %w", link, err)
	}
	return durable.Symlink(target, link)
}

// account makes the project's user and its SSH key.
func (r *run) account(ctx context.Context) error {
	h, err := r.host()
	if err != nil || r.entry.User == "" {
		return err
	}
	user, known, err := h.Accounts.User(r.entry.User)
	if err != nil {
		return err
	}
	if !known {
		if err := h.Accounts.Allowed("creating the user " + r.entry.User); err != nil {
			r.record.Note("the user %s was not created: %v", r.entry.User, err)
			return nil
		}
		own := true
		err := h.Accounts.AddUser(ctx, host.NewUser{
			Name: r.entry.User, OwnGroup: &own, CreateHome: true, Home: path.Join("/home", r.entry.User), Shell: "/bin/sh", Gecos: "project " + r.entry.Name,
		})
		if err != nil {
			return fmt.Errorf("creating the user of %s: %w", r.entry.Name, err)
		}
		if user, known, err = h.Accounts.User(r.entry.User); err != nil || !known {
			return errors.Join(err, fmt.Errorf("the user %s was created and is not there", r.entry.User))
		}
	}
	return sshKey(h.Files, user, r.entry.Name)
}

// sshKey makes a key for a user who has none, for fetching what the project needs.
func sshKey(files host.Files, user host.User, project string) error {
	dir := path.Join(user.Home, ".ssh")
	file := path.Join(dir, "id_ed25519")
	_, err := files.Stat(user.Home)
	if found, err := walk.Found(err); err != nil || !found || !files.CanChown() {
		return err
	}
	if _, err := files.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	private, public, err := procedure.NewSSHKey(user.Name + "@" + project)
	if err != nil {
		return err
	}
	if err := files.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the SSH key of %s: %w", project, err)
	}
	write := func(file string, content []byte, mode fs.FileMode) error {
		return files.Write(file, host.NewFile{Content: bytes.NewReader(content), Mode: &mode, UID: user.UID, GID: user.GID})
	}
	err = errors.Join(files.Chown(dir, user.UID, user.GID), write(file, private, 0o600), write(file+".pub", public, 0o644))
	if err != nil {
		return fmt.Errorf("making the SSH key of %s: %w", project, err)
	}
	return nil
}

// giveToUser is the built-in fixperms: data, and what the release calls writable, belong to the
// project's user; the pillar is root's alone.
func (r *run) giveToUser(pair ledger.Pair) error {
	p := r.project(pair.Service.Project)
	if err := os.Chmod(p.Pillar(), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := r.host()
	if err != nil || r.entry == nil || r.entry.User == "" {
		return err
	}
	user, known, err := h.Accounts.User(r.entry.User)
	if err != nil {
		return err
	}
	if !known || !h.Files.CanChown() {
		r.record.Note("fixperms left owners as they are: there is no user %s, or files cannot be given to others here", r.entry.User)
		return nil
	}
	for _, path := range r.writable(pair, p) {
		if err := give(path, user.UID, user.GID); err != nil {
			return fmt.Errorf("fixperms of %s: %w", p.Name, err)
		}
	}
	return nil
}

// writable lists what belongs to the project's user. A tree that somebody works in stays theirs.
func (r *run) writable(pair ledger.Pair, p layout.Project) []string {
	paths := []string{p.Data()}
	says, err := recipe.Load(os.DirFS(r.tree(pair)))
	if err != nil || pair.Service.Local == trust.ByEditable {
		return paths
	}
	for _, name := range says.Writable {
		paths = append(paths, filepath.Join(r.tree(pair), name))
	}
	return paths
}

// give changes the owner of all below a path. The user may write there meanwhile, so nothing is
// reached through a link, and a file that has a second name elsewhere stays whose it is.
func give(path string, uid, gid int) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), filepath.Base(path), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || d.Type().IsRegular() && linked(info) {
			return err
		}
		return root.Lchown(name, uid, gid)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func linked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// enter reads what the registry says of the project that a run is about.
func (r *run) enter(project string) error {
	entry, notes, err := r.entryOf(project, !r.test)
	var corrupt *ledger.Corrupt
	if r.test && errors.As(err, &corrupt) {
		entry, err = r.entryFromDisk(project) // as a run would make it, that says so
	}
	r.entry = entry
	for _, text := range notes {
		r.record.Note("%s", text)
	}
	return exit.WithCode(exit.Usage, err)
}

// defaultBranch is the branch whose push is deployed.
const defaultBranch = "main"
