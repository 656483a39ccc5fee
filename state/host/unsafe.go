package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/runnable"
)

// Unsafe reports whether an error refuses a path because another user controls a link in it, or a hard link of its
// file. The hint is for the author of the state.
func Unsafe(err error) (hint string, unsafe bool) {
	var refused *walk.UnsafeError
	if !errors.As(err, &refused) {
		return "", false
	}
	if refused.Source && refused.Into == "" {
		return refused.Hint(), true
	}
	if refused.Into != "" {
		return refused.Hint() + "; `follow_unsafe: true` has the state take it anyway", true
	}
	return refused.Hint() + "; `follow_unsafe: true` has the state follow it anyway", true
}

// declaredError is an error that refuses what a release declares, whatever users of the host do.
type declaredError struct{ error }

// Unwrap returns the error.
func (d *declaredError) Unwrap() error { return d.error }

// MayDeclare returns an error for setuid and setgid bits that a release declares for a file with an owner and a group,
// -1 for those of the agent, if who controls the directories of its path decides against them. Whether it does so
// depends on nothing that an unprivileged user can create, remove or exchange: see walk.Root.MayDeclare. So states call
// it before they look at the file, and the release is at fault, and not the host.
func (h *Host) MayDeclare(p string, uid, gid int, mode fs.FileMode) error {
	t, ok := h.Files.(*tree)
	if !ok || mode&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
		return nil
	}
	program := unix.Stat_t{Uid: uint32(keep(uid, os.Geteuid())), Gid: uint32(keep(gid, os.Getegid())),
		Mode: unix.S_IFREG | walk.RawMode(mode)}
	if err := t.root.MayDeclare(p, &program); err != nil {
		return &declaredError{err}
	}
	return nil
}

// Declared marks an error that refuses setuid or setgid bits at a path which root alone controls, if no user can change
// the reason either: who owns the file. The caller has the path and the mode from the release. Other errors are
// returned as they are.
func (h *Host) Declared(p string, err error) error {
	var refused *walk.UnsafeError
	if t, ok := h.Files.(*tree); ok && errors.As(err, &refused) && refused.OfOwner {
		if party, _ := t.root.Changer(p, false); party == "" {
			return &declaredError{err}
		}
	}
	return err
}

// ByUser reports whether an error refuses a path that an unprivileged user could have prepared, so that the host is at
// fault and not the release.
func ByUser(err error) bool {
	var declared *declaredError
	_, unsafe := Unsafe(err)
	return unsafe && !errors.As(err, &declared)
}

// WithNames replaces user IDs by names in texts about an error that refuses a path, or is an Obstacle.
func (h *Host) WithNames(err error, texts ...*string) {
	for _, o := range h.obstaclesIn(err) {
		if o.owner == 0 {
			continue
		}
		for _, t := range texts {
			*t = strings.ReplaceAll(*t, o.Error(), h.named(o.Error(), o.owner))
		}
	}
	var refused *walk.UnsafeError
	if !errors.As(err, &refused) {
		return
	}
	named := refused.Named(h.userName, h.groupName)
	words := strings.NewReplacer(refused.Error(), named.Error(), refused.Hint(), named.Hint())
	for _, t := range texts {
		*t = words.Replace(*t)
	}
}

func (h *Host) userName(id int) string {
	if h.Accounts == nil {
		return ""
	}
	u, _, err := h.Accounts.UserByID(id)
	if err != nil {
		return "" // the ID is shown
	}
	return u.Name
}

func (h *Host) groupName(id int) string {
	if h.Accounts == nil {
		return ""
	}
	g, _, err := h.Accounts.GroupByID(id)
	if err != nil {
		return ""
	}
	return g.Name
}

// followed returns the same files with every link followed.
func followed(files Files) Files {
	if t, ok := files.(*tree); ok {
		return t.following()
	}
	return files
}

type followingKey struct{}

// WithFollowing returns a context for calls that follow every link, including those that other users control.
func WithFollowing(ctx context.Context) context.Context {
	return context.WithValue(ctx, followingKey{}, true)
}

// FilesFor returns the files for calls with a context: those of Following if it is one of WithFollowing.
func (h *Host) FilesFor(ctx context.Context) Files {
	h = h.Attributed(ctx)
	if ctx.Value(followingKey{}) != nil {
		return h.Following().Files
	}
	return h.Files
}

// Changeable returns an error if another user may have created the path as a hard link to the file, in which case Chown
// and Chmod refuse the path. info is the result of Lstat for the path.
func (h *Host) Changeable(p string, info Info) error {
	t, ok := h.Files.(*tree)
	if !ok || info.IsDir() || info.Links < 2 {
		return nil
	}
	return t.do("lstat", p, func(dir int, name string) error {
		fd, _, err := t.place(dir, name)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	})
}

// Refuses returns the error with which Files refuses to follow the links of a path, or nil if it does not. Callers
// handle the error, so it is not recorded as a machine error. The target may change at any time, so Files checks it
// again.
func (h *Host) Refuses(p string) error {
	t, ok := h.Files.(*tree)
	if !ok {
		return nil
	}
	fd, err := t.openat(p, unix.O_PATH)
	if err == nil {
		_ = unix.Close(fd)
	}
	var refused *walk.UnsafeError
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// followingCommands runs commands with Following set.
type followingCommands struct{ Commands }

func (f followingCommands) Run(ctx context.Context, c Command) (Output, error) {
	c.Following = true
	return f.Commands.Run(ctx, c)
}

// followingAccounts changes accounts in a context of WithFollowing, so that tools follow every link to a home.
type followingAccounts struct{ Accounts }

func (f followingAccounts) AddUser(ctx context.Context, n NewUser) error {
	return f.Accounts.AddUser(WithFollowing(ctx), n)
}

func (f followingAccounts) ChangeUser(ctx context.Context, name string, c UserChange) error {
	return f.Accounts.ChangeUser(WithFollowing(ctx), name, c)
}

func (f followingAccounts) RemoveUser(ctx context.Context, name string, r UserRemoval) error {
	return f.Accounts.RemoveUser(WithFollowing(ctx), name, r)
}

// CheckPath returns an error if another user can redirect a path while a program with the path as its argument runs. It
// returns nil for a host that follows every link.
func (h *Host) CheckPath(p string) error {
	if t, ok := h.Files.(*tree); ok {
		return t.root.ByName(p)
	}
	return nil
}

// CheckRootOnly returns an error if an unprivileged user controls any part of a file or directory, since a program of
// root would execute or read data of that user. It returns nil for a host that follows every link, and if the agent
// does not run as root. If p does not exist, the error wraps fs.ErrNotExist.
func (h *Host) CheckRootOnly(p string) error {
	if t, ok := h.Files.(*tree); ok && os.Geteuid() == 0 {
		return t.root.CheckRootOnly(p)
	}
	return nil
}

// CheckClone returns an error if git must not run as a user ("" for root) in the clone that contains dir, because
// another user can change files that git reads or runs: see clone.Check. It returns nil in the same cases as
// CheckRootOnly.
func (h *Host) CheckClone(dir, user string) error {
	t, ok := h.Files.(*tree)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	as := clone.As{Home: "/root"}
	if user != "" && user != "root" {
		u, found, err := h.Accounts.User(user)
		if err != nil || !found {
			return err // running git fails then
		}
		as = clone.As{UID: u.UID, Name: u.Name, Home: u.Home}
	}
	return clone.Check(t.root, dir, as)
}

// CheckFetched returns an error if another user can change a repository from which root fetches, or one to which it
// refers: see clone.CheckFetched. It returns nil in the same cases as CheckRootOnly.
func (h *Host) CheckFetched(dir string) error {
	if t, ok := h.Files.(*tree); ok && os.Geteuid() == 0 {
		return clone.CheckFetched(t.root, dir)
	}
	return nil
}

// CheckTrusted returns an error if an unprivileged user can change or replace a file on whose content root would act: a
// template, an SLS file, a program that gets setuid bits. If the file is in one of the directories tops, users who also
// control that directory are trusted, since the tree was configured by its directory. CheckTrusted returns nil if the
// file does not exist, and if the agent does not run as root. It ignores WithFollowing.
func CheckTrusted(files any, p string, tops ...string) error {
	t, ok := files.(*tree)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	err := t.root.Source(p, walk.Trust{Tops: tops})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return nil
	}
	return pathError("open", p, err)
}

// Recipient describes the destination of the content of a source; see walk.Recipient.
type Recipient = walk.Recipient

type recipientKey struct{}

// To returns a context with the destination of sources that are opened with it. Without a destination, only root may
// control a source.
func To(ctx context.Context, r Recipient) context.Context {
	return context.WithValue(ctx, recipientKey{}, &r)
}

// Received returns an error if an unprivileged user controls the bytes of a file of this host, unless the destination
// of the bytes belongs to that user or is given to that user (see To). If the file is in one of the directories tops,
// users who also control that directory are trusted. Received returns nil if the file does not exist, if ctx is one of
// WithFollowing, and if the agent does not run as root.
func (h *Host) Received(ctx context.Context, p string, tops ...string) error {
	return h.received(ctx, p, func(r *walk.Root, trust walk.Trust) error {
		trust.Tops = tops
		return r.Source(p, trust)
	})
}

// ReceivedLink is like Received for the text of a symbolic link.
func (h *Host) ReceivedLink(ctx context.Context, p string, tops ...string) error {
	return h.received(ctx, p, func(r *walk.Root, trust walk.Trust) error {
		trust.Tops = tops
		return r.SourceLink(p, trust)
	})
}

// ReceivedTree is like Received for a directory with its content, or a file.
func (h *Host) ReceivedTree(ctx context.Context, p string) error {
	return h.received(ctx, p, func(r *walk.Root, trust walk.Trust) error { return r.SourceTree(p, trust) })
}

func (h *Host) received(ctx context.Context, p string, look func(*walk.Root, walk.Trust) error) error {
	t, ok := h.Files.(*tree)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	if of, attributed := ctx.Value(attributedKey{}).(*step); attributed {
		of.takes(t.root, p) // also if links are followed: users may decide the content
	}
	if ctx.Value(followingKey{}) != nil || !t.root.Safe() {
		return nil
	}
	to, _ := ctx.Value(recipientKey{}).(*Recipient)
	if to == nil {
		to = &Recipient{}
	}
	err := look(t.root, walk.Trust{To: to})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return nil
	}
	return pathError("open", p, err)
}

// OwnerOf returns the unprivileged user who owns a directory, or the nearest existing directory above it. That user can
// put programs and configuration there that a program such as git or pip runs, so the program must run as that user.
// OwnerOf returns "" for root and the agent's own user, who are trusted. It returns an error for a directory of root if
// its access control lists let other users write there.
func (h *Host) OwnerOf(dir string) (string, error) {
	info, err := h.Files.Stat(dir)
	for ; errors.Is(err, fs.ErrNotExist) && dir != "/"; info, err = h.Files.Stat(dir) {
		dir = path.Dir(dir)
	}
	if err != nil || info.UID == 0 || info.UID == os.Geteuid() || os.Geteuid() != 0 {
		if t, ok := h.Files.(*tree); ok && err == nil && os.Geteuid() == 0 {
			err = t.root.Granted(dir)
		}
		return "", err
	}
	u, ok, err := h.Accounts.UserByID(info.UID)
	if err == nil && !ok {
		err = diag.Exposed.Hint(fmt.Errorf("%s belongs to user %d, who has no account", dir, info.UID),
			"give it to root, or make the account: root runs nothing that other users can change")
	}
	return u.Name, err
}

// checkProgram returns an error if another user can change a program, the interpreter of a script, or what a python3
// reads when it starts. It returns nil if the agent does not run as root.
func (t *tree) checkProgram(p string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if unsafe := runnable.Replaceable(t.root, p); unsafe != nil {
		return fmt.Errorf("root does not run %s: %w", p, unsafe)
	}
	return nil
}

// CheckScript returns an error if files, those of a host, have a script at a path whose interpreter another user can
// change.
func CheckScript(files any, p string) error {
	t, ok := files.(*tree)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	if unsafe := runnable.InterpretedBy(t.root, p); unsafe != nil {
		return unsafe
	}
	return nil
}
