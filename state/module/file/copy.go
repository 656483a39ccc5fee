package file

import (
	"context"
	"fmt"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// duplicate implements file.copy: it copies a file or directory of the host.
type duplicate struct {
	ownership
	unsupported
	Name     string      `sls:"name"`
	Source   string      `sls:"source,required"`
	Force    bool        `sls:"force"`
	MakeDirs bool        `sls:"makedirs"`
	Preserve bool        `sls:"preserve"`
	Mode     module.Mode `sls:"mode"`
	DirMode  module.Mode `sls:"dir_mode"`
	Subdir   bool        `sls:"subdir"`

	own    perms
	source host.Info
	real   string // the source with a link at its end resolved
	target string
	there  bool
}

func (c *duplicate) Check(ctx context.Context, h *host.Host) (d module.Diff, err error) {
	d.Warnings = c.unsupported.warnings()
	if name, err := absolute(h, "name", c.Name); err == nil && !c.Preserve {
		if err := c.ownership.mayDeclare(h, c.Mode, name); err != nil {
			return d, err
		}
	}
	if err := c.resolve(h); err != nil {
		return d, err
	}
	info, there, err := look(h.Files.Lstat, c.target)
	if err != nil {
		return d, err
	}
	c.there = there
	if err := c.checkTrusted(h); err != nil && (!there || c.Force) {
		return d, err
	}
	if there && !c.Force {
		d.Comment = c.target + " exists and is kept"
		return d, nil
	}
	if there {
		same, err := c.same(ctx, h, info)
		if err != nil || same {
			d.Comment = c.target + " is the same already"
			return d, err
		}
	}
	if err := c.received(ctx, h); err != nil {
		return d, err
	}
	d.Comment = fmt.Sprintf("would copy %s to %s", c.Source, c.target)
	d.Changes, d.Planned = value.NewMap(c.target, c.Source), value.NewMap()
	if !c.Preserve {
		c.own.note(birth(h, c.target, c.source.Mode&permBits), d.Changes)
	}
	d.Warnings = append(d.Warnings, c.own.notes...)
	if !c.MakeDirs && !isDir(h, path.Dir(c.target)) {
		d.Missing = append(d.Missing, noParent(h, c.target))
	}
	return d, nil
}

// resolve sets the absolute paths, the owner and the mode.
func (c *duplicate) resolve(h *host.Host) (err error) {
	if c.target, err = absolute(h, "name", c.Name); err != nil {
		return err
	}
	if c.Source, err = absolute(h, "source", c.Source); err != nil {
		return err
	}
	var there bool
	if c.source, there, err = look(h.Files.Stat, c.Source); err != nil || !there {
		return diag.Prerequisite.Hint(orMissing(err, c.Source), "require the state that makes it")
	}
	if c.real, err = h.Files.Resolve(c.Source); err != nil {
		return err
	}
	if c.Subdir && isDir(h, c.target) {
		c.target = path.Join(c.target, path.Base(c.Source))
	}
	if c.Preserve {
		c.own = perms{owner: ownerOf(h, c.source)}
		return nil
	}
	who := c.ownership
	if h.Files.CanChown() {
		who = who.orRoot(h)
	}
	c.own.owner, err = who.resolve(h)
	c.own.mode = c.Mode
	if !c.Mode.Given {
		uid, gid := c.own.ids()
		c.own.mode = module.Mode{Given: true, Bits: copiedMode(c.source, uid, gid)}
	}
	return err
}

func orMissing(err error, p string) error {
	if err != nil {
		return err
	}
	return lackingFile(fmt.Errorf("%s does not exist", p), p)
}

// same reports whether the target already equals the copy.
func (c *duplicate) same(ctx context.Context, h *host.Host, info host.Info) (bool, error) {
	found := value.NewMap()
	c.own.note(info, found)
	if found.Len() > 0 || !info.IsRegular() || !c.source.IsRegular() || info.Size != c.source.Size {
		return false, nil
	}
	one, err := h.Files.Open(c.Source)
	if err != nil {
		return false, err
	}
	defer one.Close()
	two, err := h.Files.Open(c.target)
	if err != nil {
		return false, err
	}
	defer two.Close()
	return host.Same(ctx, one, two)
}

// checkTrusted returns an error if the copy would have the setuid or setgid bit and an unprivileged user can change the
// source, unless the copy belongs to the same user and group.
func (c *duplicate) checkTrusted(h *host.Host) error {
	uid, gid := c.own.ids()
	if c.source.IsDir() || uid > 0 && uid == c.source.UID && gid == c.source.GID {
		return nil
	}
	if !raises(c.own.mode) && !raises(module.Mode{Given: true, Bits: copiedMode(c.source, uid, gid)}) {
		return nil
	}
	if err := host.CheckTrusted(h.Files, c.Source); err != nil {
		return fmt.Errorf("setuid and setgid bits are refused: %w", err)
	}
	return nil
}

func (c *duplicate) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if c.own.problem != nil {
		return module.Report{}, c.own.problem
	}
	if err := c.received(ctx, h); err != nil {
		return module.Report{}, err
	}
	if err := c.place(h); err != nil {
		return module.Report{}, err
	}
	if err := c.replace(ctx, h); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("copied %s to %s", c.Source, c.target)}, nil
}

// replace creates the copy next to the target, and then renames it to the target.
func (c *duplicate) replace(ctx context.Context, h *host.Host) error {
	temp := path.Join(path.Dir(c.target), host.TempName("*"))
	if err := c.fill(ctx, h, temp); err != nil {
		_ = h.Files.RemoveAll(temp)
		return fmt.Errorf("copying %s: %w", c.Source, err)
	}
	if c.there {
		if err := h.Files.RemoveAll(c.target); err != nil {
			return err
		}
	}
	if err := h.Files.Rename(temp, c.target); err != nil {
		_ = h.Files.RemoveAll(temp)
		return err
	}
	return nil
}

// fill makes the copy at a temporary path, so that the target is never incomplete.
func (c *duplicate) fill(ctx context.Context, h *host.Host, temp string) error {
	if err := copyTree(ctx, h, c.real, temp, c.own.owner); err != nil {
		return err
	}
	info, err := h.Files.Lstat(temp)
	if err != nil {
		return err
	}
	return c.own.set(h, temp, info)
}

// received returns an error if an unprivileged user can change the source and the copy belongs to root or to another
// user.
func (c *duplicate) received(ctx context.Context, h *host.Host) error {
	uid, _ := c.own.ids()
	return h.ReceivedTree(host.To(ctx, host.Recipient{Path: c.target, UID: uid}), c.Source)
}

func (c *duplicate) place(h *host.Host) error {
	if isDir(h, path.Dir(c.target)) {
		return nil
	}
	if !c.MakeDirs {
		return noParent(h, c.target)
	}
	above := perms{owner: c.own.owner, mode: c.DirMode}
	if !above.mode.Given && c.own.mode.Given {
		above.mode = module.Mode{Given: true, Bits: searchable(c.own.mode.Bits)}
	}
	return parents(h, c.target, above)
}
