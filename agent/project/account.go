package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"golang.org/x/sys/unix"
)

// account creates the project's user, and an SSH key for it. If users cannot be created, it notes that.
func (r *Run) account(ctx context.Context) error {
	h, err := r.Host.StateHost()
	if err != nil || r.Entry.User == "" {
		return err
	}
	user, known, err := h.Accounts.User(r.Entry.User)
	if err != nil {
		return err
	}
	if !known {
		if err := h.Accounts.Allowed("creating the user " + r.Entry.User); err != nil {
			r.Record.Note("the user %s was not created: %v", r.Entry.User, err)
			return nil
		}
		own := true
		err := h.Accounts.AddUser(ctx, host.NewUser{
			Name: r.Entry.User, OwnGroup: &own, CreateHome: true, Home: path.Join("/home", r.Entry.User),
			Shell: "/bin/sh", Gecos: "project " + r.Entry.Name,
		})
		if err != nil {
			return fmt.Errorf("creating the user of %s: %w", r.Entry.Name, err)
		}
		if user, known, err = h.Accounts.User(r.Entry.User); err != nil || !known {
			return errors.Join(err, fmt.Errorf("the user %s was created and does not exist", r.Entry.User))
		}
	}
	if !h.Files.CanChown() {
		return nil
	}
	return r.sshKey(user, r.Entry.Name)
}

// sshKey creates a key pair for a user who has none, with which the project can fetch what it needs. The home belongs
// to the user, so it is entered by descriptors: a link in the place of .ssh is refused and noted, and does not fail the
// deploy.
func (r *Run) sshKey(user host.User, project string) error {
	root, err := r.Host.OpenSafely()
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

// noKey notes why a user gets no key if the reason is something in the user's home, and returns other errors.
func (r *Run) noKey(user host.User, err error) error {
	if err == nil || diag.HintOf(err) == "" && !site.Unstable(err) {
		return err
	}
	r.Record.Note("no SSH key was made for %s: %v; %s", user.Name, err, diag.HintOf(err))
	return nil
}

// sshDir opens the .ssh directory of a user, and makes it if there is none.
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
		return nil, diag.Exposed.Hint(
			fmt.Errorf("%s/.ssh, which user %d owns, is not a directory of that user", user.Home, st.Uid),
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
