package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// sync makes the host ready for a project: its entry in the registry, its directories, user, default
// procedures and links. Doing it again does what is missing.
func (r *run) sync(ctx context.Context, pair ledger.Pair) error {
	follows, err := r.follows(pair, procedure.Sync)
	if err != nil || !r.only.Has(procedure.Sync) || r.entry == nil && !follows || pair.BaseAlone() {
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
		root, err := r.OpenSafely()
		if err != nil {
			return err
		}
		defer root.Close()
		written, err := procedure.WriteSkeleton(root, r.Layout.Inside(r.tree(pair)), pair.Service.Project)
		if len(written) > 0 {
			r.record.Note("default procedures were written into %s: %s", procedure.Dir, strings.Join(written, ", "))
		}
		return err
	})
}

// register makes an entry where there is none.
func (r *run) register(name string) {
	if r.entry == nil {
		user := records.UserName(name)
		r.entry = &ledger.Project{Name: name, User: user, Group: user}
	}
}

// Where Salt's own tools find what projects bring.
const (
	projectStates  = "/srv/salt/makina-projects"
	projectPillars = "/srv/pillar/makina-projects"
)

// prepare lays out the project of the entry.
func (r *run) prepare(ctx context.Context) error {
	p := r.LayoutOf(r.entry.Name)
	if err := layOut(p); err != nil {
		return err
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
	if above := filepath.Dir(link); walk.Misplaced(above) || walk.Misplaced(filepath.Dir(above)) {
		r.record.Note("%s is not made, since something else stands in the place of a directory above it: move that away", r.Layout.Inside(link))
		return nil
	}
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
	h, err := r.StateHost()
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
	if !h.Files.CanChown() {
		return nil
	}
	return r.sshKey(user, r.entry.Name)
}

// sshKey makes a key for a user who has none, for fetching what the project needs. The home is the user's, so it is entered
// by descriptors: a link in the place of .ssh is refused and noted, and does not stop the deploy.
func (r *run) sshKey(user host.User, project string) error {
	root, err := r.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	home, err := root.OpenDir(user.Home)
	if found, err := walk.Found(err); !found {
		return r.noKey(user, err)
	}
	defer home.Close()
	ssh, err := sshDir(home, user)
	if err != nil {
		return r.noKey(user, err)
	}
	defer ssh.Close()
	if _, err := ssh.Lstat(keyFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	private, public, err := procedure.NewSSHKey(user.Name + "@" + project)
	if err != nil {
		return err
	}
	write := func(name string, content []byte, mode fs.FileMode) error {
		return ssh.Create(name, walk.New{Mode: mode, UID: user.UID, GID: user.GID}, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	}
	if err := errors.Join(write(keyFile, private, 0o600), write(keyFile+".pub", public, 0o644)); err != nil {
		return fmt.Errorf("making the SSH key of %s: %w", project, err)
	}
	return nil
}

const keyFile = "id_ed25519"

// noKey notes why a user gets no key, where that is the user's doing.
func (r *run) noKey(user host.User, err error) error {
	if err == nil || diag.HintOf(err) == "" && !site.Unstable(err) {
		return err
	}
	r.record.Note("no SSH key was made for %s: %v; %s", user.Name, err, diag.HintOf(err))
	return nil
}

// sshDir opens a user's .ssh, and makes it where there is none.
func sshDir(home *walk.Dir, user host.User) (*walk.Dir, error) {
	st, err := home.Lstat(".ssh")
	found, err := walk.Found(err)
	if err != nil {
		return nil, err
	}
	if !found {
		return home.Mkdir(".ssh", walk.New{Mode: 0o700, UID: user.UID, GID: user.GID})
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != user.UID && st.Uid != 0 {
		return nil, diag.WithHint(fmt.Errorf("%s/.ssh, which user %d owns, is not a directory of that user", user.Home, st.Uid),
			"look at it with ls -ld; remove it, or make it a directory that belongs to %s", user.Name)
	}
	ssh, err := home.OpenDir(".ssh")
	if err != nil {
		return nil, err
	}
	if err := ssh.Give(".", user.UID, user.GID); err != nil {
		return nil, errors.Join(err, ssh.Close())
	}
	return ssh, nil
}

// enter reads what the registry says of the project that a run is about.
func (r *run) enter(project string) error {
	entry, notes, err := r.Entry(project, !r.test)
	var corrupt *ledger.Corrupt
	if r.test && errors.As(err, &corrupt) {
		entry, err = r.EntryFromDisk(project) // as a run would make it, that says so
	}
	r.entry = entry
	for _, text := range notes {
		r.record.Note("%s", text)
	}
	return exit.WithCode(exit.Usage, err)
}
