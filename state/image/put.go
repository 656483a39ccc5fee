package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/accounts"
)

// Putter restores parts of images.
type Putter struct {
	Host    *host.Host
	Content Content
}

// Stays is the reason why something can never be restored.
type Stays string

func (s Stays) Error() string { return string(s) }

// NotEmpty is the reason why a directory stays: it has files that no state created.
const NotEmpty = Stays("there are files in it that no state made")

// Put restores one part of a subject. Packages are restored together, by Packages.
func (p Putter) Put(ctx context.Context, s host.Subject, want Part) error {
	switch {
	case want.Lost != "" && !p.holds(ctx, want):
		return Stays(want.Lost)
	case want.Type == Special:
		return Stays("pipes, sockets and devices are not recreated")
	case path.IsAbs(want.Name) && (s.Kind == host.KindUser || s.Kind == host.KindGroup):
		return p.line(ctx, s.Name, want)
	case path.IsAbs(want.Name):
		return p.path(ctx, want)
	case s.Kind == host.KindUnit || s.Kind == host.KindBoot:
		return p.unit(ctx, s.Name, want)
	}
	return p.kernel(ctx, s, want)
}

// path restores the file at a path. The caller has checked that a file in its place is one that a state left there.
func (p Putter) path(ctx context.Context, want Part) error {
	files := p.Host.Files
	now, err := files.Lstat(want.Name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, host.ErrNotDir) {
		return err
	}
	if there && (want.Type == Absent || now.IsDir() != (want.Type == Directory)) {
		if err := remove(files, want.Name); err != nil {
			return err
		}
		there = false
	}
	switch want.Type {
	case Absent:
		return nil
	case Link:
		return p.link(want)
	case Directory:
		if !there {
			if err := files.Mkdir(want.Name, fs.FileMode(want.Mode)); err != nil {
				return err
			}
		}
	case File:
		if there && now.Size == want.Size && p.holds(ctx, want) {
			return errors.Join(p.own(want), p.dress(want)) // processes may have it open
		}
		if err := p.write(want); err != nil {
			return err
		}
	}
	return p.dress(want)
}

// holds reports whether a file has the wanted content.
func (p Putter) holds(ctx context.Context, want Part) bool {
	if want.Type != File {
		return false
	}
	now, err := Taker{Host: p.Host, ctx: ctx}.path(want.Name)
	return err == nil && now.sameContent(want)
}

// remove removes a file or an empty directory.
func remove(files host.Files, name string) error {
	err := files.Remove(name)
	switch {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, fs.ErrExist):
		return NotEmpty
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

func (p Putter) link(want Part) error {
	if err := p.Host.Files.Symlink(want.Text, want.Name); err != nil {
		return err
	}
	return p.chown(want)
}

func (p Putter) write(want Part) error {
	content, err := p.Content.Open(want.Pieces)
	if err != nil {
		return err
	}
	defer content.Close()
	mode := fs.FileMode(want.Mode)
	new := host.NewFile{Content: content, Mode: &mode, UID: -1, GID: -1, ReplaceLink: true, Restored: true}
	if p.Host.Files.CanChown() {
		new.UID, new.GID = want.UID, want.GID
	}
	return p.Host.Files.Write(want.Name, new)
}

// dress restores the attributes of a file or directory.
func (p Putter) dress(want Part) error {
	files := p.Host.Files
	now, err := files.Attributes(want.Name)
	if err != nil {
		return err
	}
	if want.Type == Directory {
		if err := p.own(want); err != nil {
			return err
		}
	}
	if len(now)+len(want.Xattrs) > 0 {
		if err := files.SetAttributes(want.Name, want.Xattrs); err != nil {
			return err
		}
	}
	if want.Type != File {
		return nil
	}
	at := time.Unix(0, want.Modified)
	return files.Chtimes(want.Name, at, at)
}

// own restores the owner, the group and the mode.
func (p Putter) own(want Part) error {
	uid, gid, mode := -1, -1, fs.FileMode(want.Mode)
	if p.Host.Files.CanChown() {
		uid, gid = want.UID, want.GID
	}
	return p.Host.Files.Own(want.Name, uid, gid, &mode)
}

func (p Putter) chown(want Part) error {
	if !p.Host.Files.CanChown() {
		return nil
	}
	return p.Host.Files.Chown(want.Name, want.UID, want.GID)
}

func (p Putter) line(ctx context.Context, name string, want Part) error {
	line := accounts.Line{After: want.Text}
	if want.Type == Line {
		r, err := p.Content.Open(want.Pieces)
		if err != nil {
			return err
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		line.Text = string(text)
	}
	return accounts.SetLine(ctx, p.Host, want.Name, name, line)
}

func (p Putter) unit(ctx context.Context, name string, want Part) error {
	u, err := p.Host.Units.Unit(ctx, name, "")
	if err != nil || u.Running() == want.Runs() {
		return err
	}
	verb := host.Stop
	if want.Runs() {
		verb = host.Start
	}
	return p.Host.Units.Act(ctx, verb, name, true)
}

// Runs reports whether the part is the state of a running unit.
func (p Part) Runs() bool { return p.Type == Value && p.Text == running }

// kernel restores a setting of the running system.
func (p Putter) kernel(ctx context.Context, s host.Subject, want Part) error {
	switch s.Kind {
	case host.KindHostname:
		return p.Host.Kernel.SetHostname(want.Text)
	case host.KindSysctl:
		return p.tool(ctx, s, "sysctl", "-q", "-w", s.Name+"="+want.Text)
	case host.KindKernelModule:
		if want.Text == "" {
			return p.tool(ctx, s, "modprobe", "-r", "--", s.Name)
		}
		return p.tool(ctx, s, "modprobe", "--", s.Name)
	case host.KindMount:
		return p.mount(ctx, s, want.Text)
	}
	return fmt.Errorf("a %s cannot be restored", s.Kind)
}

// mount restores a mount, in the place of the present one.
func (p Putter) mount(ctx context.Context, s host.Subject, want string) error {
	taker := Taker{Host: p.Host}
	now, err := taker.mounted(s.Name)
	if err != nil {
		return err
	}
	place, f := taker.real(s.Name), strings.Fields(want)
	was := strings.Fields(now.Part("mounted").Text)
	if len(was) > 1 && len(f) > 3 && was[0] == f[0] {
		// With both the device and the path, mount(8) does not merge the options with the present ones.
		return p.tool(ctx, s, "mount", "-t", f[2], "-o", "remount,"+f[3], "--", walk.MountWord(f[0]), walk.MountWord(f[1]))
	}
	switch {
	case now.Part("mounted").Text == "swap":
		err = p.tool(ctx, s, "swapoff", "--", place)
	case len(was) > 0:
		err = p.tool(ctx, s, "umount", "--", place)
	}
	if err == nil {
		now, err = taker.mounted(s.Name) // there may be another below it
	}
	switch {
	case err != nil || want == now.Part("mounted").Text:
		return err
	case want == "swap":
		return p.tool(ctx, s, "swapon", "--", place)
	case len(f) < 4:
		return fmt.Errorf("%q is mounted there, in the place of %q", now.Part("mounted").Text, want)
	}
	return p.tool(ctx, s, "mount", "-t", f[2], "-o", f[3], "--", walk.MountWord(f[0]), walk.MountWord(f[1]))
}

func (p Putter) tool(ctx context.Context, s host.Subject, argv ...string) error {
	_, err := p.Host.Tool(ctx, host.Tool{Argv: argv, Changes: s})
	return err
}
