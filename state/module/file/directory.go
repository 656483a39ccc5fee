package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// directory implements file.directory: a directory with an owner and a mode. With recurse it also sets those of
// its content, and with clean it removes files that no other state manages.
type directory struct {
	ownership
	unsupported
	cleaning
	Name           string      `sls:"name"`
	Mode           module.Mode `sls:"mode"`
	DirMode        module.Mode `sls:"dir_mode"`
	FileMode       module.Mode `sls:"file_mode"`
	Recurse        any         `sls:"recurse"`
	MaxDepth       *int        `sls:"max_depth"`
	MakeDirs       bool        `sls:"makedirs"`
	FollowSymlinks bool        `sls:"follow_symlinks"`
	Force          bool        `sls:"force"`
	BackupName     string      `sls:"backupname"`
	AllowSymlink   bool        `sls:"allow_symlink"`
	ChildrenOnly   bool        `sls:"children_only"`

	family *family
	own    perms
	within perms // declared for the files below
	way    obstacle
	there  bool
	set    []ownedPath // paths whose owner or mode changes
	remove []string    // paths that clean: True removes
}

// ownedPath is a path with its present metadata and the owner and mode it should have.
type ownedPath struct {
	path string
	info host.Info
	perms
	follow bool // change the target of the link at path
}

func (d *directory) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	diff := module.Diff{Warnings: d.unsupported.warnings()}
	name, err := absolute(h, "name", strings.TrimRight(d.Name, "/")+
		strings.Repeat("/", min(1, len(d.Name)-len(strings.Trim(d.Name, "/")))))
	if err != nil {
		return diff, err
	}
	d.Name = path.Clean(name)
	if d.MaxDepth != nil && d.Clean {
		return diff, diag.Contradiction.Hint(errors.New("max_depth and clean contradict each other"), "keep one of them")
	}
	if !d.DirMode.Given {
		d.DirMode = d.Mode
	}
	files := d.FileMode.Given
	if !files {
		d.FileMode = d.DirMode
	}
	d.own.mode = d.DirMode
	if d.own.owner, err = d.ownership.resolve(h); err != nil {
		return diff, err
	}
	kinds, err := recursion(d.Recurse)
	if err != nil {
		return diff, err
	}
	d.within = perms{owner: d.own.owner, mode: d.FileMode,
		kept: !files || !slices.Contains(kinds, "mode") || slices.Contains(kinds, "ignore_files")}
	if err := d.within.check(h, path.Join(d.Name, "file")); err != nil {
		return diff, err
	}
	if d.way, err = d.obstacle(h); err != nil {
		return diff, err
	}
	diff, err = d.compare(ctx, h, kinds, diff)
	diff.Warnings = append(diff.Warnings, d.own.notes...)
	diff.Missing = append(diff.Missing, d.own.lacks()...)
	return diff, err
}

func (d *directory) compare(ctx context.Context, h *host.Host, kinds []string, diff module.Diff) (module.Diff, error) {
	d.there = d.way == (obstacle{}) && isDir(h, d.Name)
	if !d.there {
		return d.checkNew(h, diff), nil
	}
	changes, inside := value.NewMap(), value.NewMap()
	if slices.Contains(kinds, "user") && d.own.user == nil || slices.Contains(kinds, "group") && d.own.group == nil {
		diff.Warnings = append(diff.Warnings, "recurse names user or group, and none is given")
	}
	if err := d.checkAll(ctx, h, kinds, changes, inside); err != nil {
		return diff, err
	}
	if err := d.checkClean(ctx, h, changes, inside); err != nil {
		return diff, err
	}
	diff.Comment = d.Name + " is as it should be"
	if changes.Len() == 0 {
		return diff, nil
	}
	diff.Comment = "would update " + d.Name
	diff.Planned = changes
	diff.Changes = changes.Clone()
	diff.Changes.Update(inside)
	if slices.Contains(kinds, "silent") {
		diff.Changes = value.NewMap("recursion", "Changes silenced")
		diff.Changes.Update(inside)
	}
	return diff, nil
}

// checkNew predicts the creation of a directory, including the replacement of a file at its path.
func (d *directory) checkNew(h *host.Host, diff module.Diff) module.Diff {
	made := value.NewMap("directory", "new")
	diff.Comment = "would make " + d.Name
	diff.Changes = value.NewMap(d.Name, made)
	if d.way.forced {
		diff.Changes = value.NewMap("forced", d.way.kind+" was forcibly replaced", d.Name, made)
		diff.Planned = value.NewMap("forced", d.way.kind+" would be forcibly replaced", d.Name, made)
	}
	if !d.MakeDirs && !isDir(h, path.Dir(d.Name)) {
		diff.Missing = append(diff.Missing, noParent(h, d.Name))
	}
	return diff
}

// checkAll compares the directory and, for the given kinds of recursion, its content. changes has an entry for
// every path; inside merges the same changes without the paths, as Salt reports them.
func (d *directory) checkAll(ctx context.Context, h *host.Host, kinds []string, changes, inside *value.Map) error {
	if !d.ChildrenOnly {
		top := ownedPath{path: d.Name, perms: d.own, follow: d.FollowSymlinks}
		if err := top.look(h); err != nil {
			return err
		}
		if err := d.compareOne(h, top, changes, inside); err != nil {
			return err
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	depth := -1
	if d.MaxDepth != nil {
		depth = *d.MaxDepth
	}
	all, err := walk(ctx, h, d.Name, depth)
	if err != nil {
		return fmt.Errorf("walking %s: %w", d.Name, err)
	}
	files, dirs := d.recursive(kinds, d.FileMode), d.recursive(kinds, d.DirMode)
	for _, f := range all {
		p := ownedPath{path: f.path, info: f.info, perms: files}
		if f.dir {
			p.perms = dirs
		}
		if f.dir && slices.Contains(kinds, "ignore_dirs") || !f.dir && slices.Contains(kinds, "ignore_files") {
			continue
		}
		if d.FollowSymlinks && f.info.IsLink() {
			if err := d.through(h, &p); vanished(err) {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := d.compareOne(h, p, changes, inside); err != nil && !vanished(err) {
			return err
		}
	}
	return nil
}

// through makes p describe the target of a link, if the target exists. A link that an unprivileged user
// controls is not followed to a file of another user; the link itself is changed instead, so that no user can
// make the state fail with a link.
func (d *directory) through(h *host.Host, p *ownedPath) error {
	if refused := h.Refuses(p.path); refused != nil {
		d.own.notes = append(d.own.notes,
			fmt.Sprintf("the link %s is not followed, and its own owner is compared: %v", p.path, refused))
		return nil
	}
	p.follow = true
	return p.look(h)
}

// look reads the metadata of the path, or of the target of a link that is followed and exists.
func (p *ownedPath) look(h *host.Host) (err error) {
	if p.follow {
		there := false
		if p.info, there, err = look(h.Files.Stat, p.path); there || err != nil {
			return err
		}
	}
	p.follow = false
	p.info, err = h.Files.Lstat(p.path)
	return err
}

// recursive returns the owner and mode for the content of the directory.
func (d *directory) recursive(kinds []string, mode module.Mode) perms {
	p := perms{owner: d.own.owner, mode: mode}
	if !slices.Contains(kinds, "user") {
		p.user, p.uid = nil, -1
	}
	if !slices.Contains(kinds, "group") {
		p.group, p.gid = nil, -1
	}
	if !slices.Contains(kinds, "mode") {
		p.mode = module.Mode{}
	}
	return p
}

func (d *directory) compareOne(h *host.Host, p ownedPath, changes, inside *value.Map) error {
	found := value.NewMap()
	p.perms.note(p.info, found)
	if len(p.perms.notes) > len(d.own.notes) {
		d.own.notes = p.perms.notes
	}
	if found.Len() == 0 {
		return nil
	}
	changes.Set(p.path, found)
	inside.Update(found)
	d.set = append(d.set, p)
	return h.Changeable(p.path, p.info)
}

func (d *directory) checkClean(ctx context.Context, h *host.Host, changes, inside *value.Map) error {
	if !d.Clean {
		return nil
	}
	all, tops, err := d.cleaning.unwanted(ctx, h, d.family, d.Name, nil)
	if err != nil {
		return fmt.Errorf("cleaning %s: %w", d.Name, err)
	}
	for _, p := range all {
		changes.Set(p, value.NewMap("removed", "Removed due to clean"))
	}
	if len(tops) > 0 {
		inside.Set("removed", value.Strings(tops...))
	}
	d.remove = tops
	return nil
}
