package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// recurse implements file.recurse: it copies a directory of the state tree to the host.
type recurse struct {
	ownership
	environment
	templated
	unsupported
	cleaning
	Name          string      `sls:"name"`
	Source        any         `sls:"source,required"`
	KeepSource    any         `sls:"keep_source"` // no effect: no source is cached
	Mode          any         `sls:"mode"`        // an error: an argument of other functions
	DirMode       module.Mode `sls:"dir_mode"`
	FileMode      module.Mode `sls:"file_mode"`
	SymMode       module.Mode `sls:"sym_mode"`
	Replace       bool        `sls:"replace"`
	IncludeEmpty  bool        `sls:"include_empty"`
	IncludePat    []string    `sls:"include_pat"`
	MaxDepth      *int        `sls:"maxdepth"`
	KeepSymlinks  bool        `sls:"keep_symlinks"`
	ForceSymlinks bool        `sls:"force_symlinks"`
	Backup        string      `sls:"backup"`
	ShowChanges   bool        `sls:"show_changes"`
	Arguments     *value.Map  `sls:"__arguments__"`

	family *family
	url    string
	parts  []part   // in the order of their application
	remove []string // paths that clean: True removes
}

func newRecurse(f *family) *recurse {
	return &recurse{Replace: true, ShowChanges: true, family: f}
}

// part is the state of a single file, directory or link of the tree.
type part struct {
	path     string
	resource module.Resource
	diff     module.Diff
	clear    bool // remove the file at the path first, as it is of another kind
	aside    bool // omitted from the changes if there are others
}

func (r *recurse) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: append(r.unsupported.warnings(), backupWarning(r.Backup)...)}
	if r.Mode != nil {
		return d, diag.Argument.Hint(errors.New("file.recurse has no mode"), "write file_mode and dir_mode")
	}
	name, err := absolute(h, "name", r.Name)
	if err != nil {
		return d, err
	}
	r.Name = path.Clean(name)
	if err := r.ownership.mayDeclare(h, r.FileMode, path.Join(r.Name, "file")); err != nil {
		return d, err
	}
	if info, there, err := look(h.Files.Stat, r.Name); err != nil {
		return d, err
	} else if there && !info.IsDir() {
		return d, host.Unlike(r.Name, info, host.ADirectory, "")
	}
	tree, err := r.tree(ctx)
	if err != nil {
		return d, err
	}
	if err := r.checkParts(ctx, h, tree); err != nil {
		return d, err
	}
	return r.sum(ctx, h, tree, d)
}

// checkParts checks every part and reports all their errors together.
func (r *recurse) checkParts(ctx context.Context, h *host.Host, tree *tree) error {
	problems := r.checkLinks(ctx, h, tree)
	for _, p := range r.plan(h, tree) {
		seen := h
		if p.clear {
			seen = without(h, p.path)
		}
		diff, err := p.resource.Check(ctx, seen)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.path, err))
			continue
		}
		if p.diff = diff; !diff.Empty() || len(diff.Warnings) > 0 {
			r.parts = append(r.parts, p)
		}
	}
	return errors.Join(problems...)
}

// checkLinks returns an error for every link that would be copied as a link and whose text an unprivileged user
// controls. As with file.symlink, it does not matter where a link leads.
func (r *recurse) checkLinks(ctx context.Context, h *host.Host, tree *tree) (problems []error) {
	own, err := r.ownership.resolve(h)
	if err != nil {
		return nil // every part reports this error
	}
	uid, _ := own.ids()
	for _, p := range sortedKeys(tree.found) {
		if err := r.family.Sources.ReceivedLink(host.To(ctx, host.Recipient{Path: p, UID: uid}), tree.found[p]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p, err))
		}
	}
	return problems
}

// sum merges the changes of all parts by path. Like Salt, it reports the creation of the directory itself in a
// dry run only.
func (r *recurse) sum(ctx context.Context, h *host.Host, tree *tree, d module.Diff) (module.Diff, error) {
	d.Changes, d.Planned = value.NewMap(), value.NewMap()
	for _, p := range r.parts {
		for _, w := range p.diff.Warnings {
			if !slices.Contains(d.Warnings, w) {
				d.Warnings = append(d.Warnings, w)
			}
		}
		if p.diff.Empty() || p.aside && len(r.parts) > 1 {
			continue
		}
		d.Planned.Set(p.path, orElse(p.diff.Planned, p.diff.Changes))
		if p.path != r.Name || isDir(h, r.Name) {
			d.Changes.Set(p.path, p.diff.Changes)
		}
	}
	if r.Clean && isDir(h, r.Name) {
		_, tops, err := r.cleaning.unwanted(ctx, h, r.family, r.Name, tree.keep)
		if err != nil {
			return d, fmt.Errorf("cleaning %s: %w", r.Name, err)
		}
		// Paths below a part that is removed as a whole are removed with it.
		r.remove = slices.DeleteFunc(tops, func(p string) bool {
			return slices.ContainsFunc(r.parts, func(way part) bool { return way.clear && strings.HasPrefix(p, way.path+"/") })
		})
		if len(r.remove) > 0 {
			d.Changes.Set("removed", value.Strings(r.remove...))
		}
	}
	d.Comment = r.describe()
	return d, nil
}

// orElse returns m, or otherwise if m is nil.
func orElse(m, otherwise *value.Map) *value.Map {
	if m != nil {
		return m
	}
	return otherwise
}

func (r *recurse) describe() string {
	if len(r.parts) == 0 && len(r.remove) == 0 {
		return r.Name + " is as it should be"
	}
	text := fmt.Sprintf("would change %s in %s", diag.Count(len(r.parts), "name"), r.Name)
	if len(r.remove) > 0 {
		text += " and remove " + strings.Join(r.remove, ", ")
	}
	return text
}

func (r *recurse) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	report := module.Report{Changes: value.NewMap(), Comment: "updated " + r.Name}
	var changing []string
	for _, p := range r.parts {
		if !p.diff.Empty() && !p.clear {
			changing = append(changing, p.path)
		}
	}
	if err := h.Announce(changing...); err != nil {
		return report, err
	}
	for _, p := range r.parts {
		if p.diff.Empty() {
			continue
		}
		if p.clear {
			if err := h.Files.RemoveAll(p.path); err != nil {
				return report, err
			}
		}
		done, err := p.resource.Apply(ctx, h, p.diff)
		if d.Changes.Has(p.path) && done.Changes.Len() > 0 {
			report.Changes.Set(p.path, done.Changes)
		}
		if err != nil {
			return report, fmt.Errorf("%s: %w", p.path, err)
		}
	}
	for i, p := range r.remove {
		if err := h.Files.RemoveAll(p); err != nil {
			return report, err
		}
		report.Changes.Set("removed", value.Strings(r.remove[:i+1]...))
	}
	return report, nil
}

// keeps returns the paths that the tree contains, which a clean: True of another state must keep.
func (r *recurse) keeps(ctx context.Context) ([]string, error) {
	tree, err := r.tree(ctx)
	if err != nil {
		return nil, err
	}
	return tree.keep, nil
}

// tree returns the wanted part of the source directory in the state tree.
func (r *recurse) tree(ctx context.Context) (*tree, error) {
	var urls []string
	for _, url := range parts(r.Source) {
		if url = withoutSlash(url); !strings.HasPrefix(url, "salt://") {
			return nil, diag.Download.Hint(fmt.Errorf("the source %s is not a directory of the state tree", url),
				"it must start with salt://")
		}
		urls = append(urls, url)
	}
	i, err := r.family.Sources.First(ctx, urls, r.environment.name())
	if err == nil {
		r.url = urls[i]
		var entries []Entry
		if entries, err = r.family.Sources.List(ctx, r.url, r.environment.name()); err == nil {
			return r.choose(entries)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotDir) {
		return nil, diag.Download.Hint(fmt.Errorf("there is no directory %s", strings.Join(urls, " or ")),
			lookAtTree, r.environment.name())
	}
	return nil, fmt.Errorf("listing %s: %w", strings.Join(urls, ", "), err)
}
