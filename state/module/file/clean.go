package file

import (
	"context"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cleaning holds the arguments of clean: True and its exceptions.
type cleaning struct {
	Clean      bool        `sls:"clean"`
	ExcludePat []string    `sls:"exclude_pat"`
	Required   *value.List `sls:"__required__"` // the chunks of the states this one requires
}

// keeper decides which files stay when a directory is cleaned.
type keeper struct {
	names   map[string]bool // files that stay, and the directories above them
	trees   map[string]bool // directories that stay with all their content
	exclude patterns
	root    string
	all     []string // all paths to remove
	tops    []string // those in all whose directory stays
}

// unwanted returns the paths in a directory that clean: True removes: those that no required state manages,
// that keep does not list and that no pattern excludes. A directory stays if anything in it stays. tops are the
// removed paths whose own directory stays.
func (c cleaning) unwanted(ctx context.Context, h *host.Host, f *family, dir string,
	keep []string) (all, tops []string, err error) {
	k := &keeper{names: map[string]bool{}, trees: map[string]bool{}, root: dir}
	if k.exclude, err = compilePatterns("exclude_pat", c.ExcludePat); err != nil {
		return nil, nil, err
	}
	k.keep(keep...)
	if c.Required != nil {
		for _, item := range c.Required.Items {
			if chunk, ok := item.(*value.Map); ok && chunk.Value("state") == "file" {
				if err := k.keepStep(ctx, h, f, chunk); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	if _, err := k.look(ctx, h, dir, 0); err != nil {
		return nil, nil, err
	}
	return k.all, k.tops, nil
}

func (k *keeper) keep(paths ...string) {
	for _, p := range paths {
		for p = path.Clean(p); p != "/" && p != "."; p = path.Dir(p) {
			k.names[p] = true
		}
	}
}

// keepStep keeps the files that a required file state manages: a file, a directory with all its content, or only the
// files that a file.recurse copies.
func (k *keeper) keepStep(ctx context.Context, h *host.Host, f *family, chunk *value.Map) error {
	name, err := absolute(h, "name", value.Str(chunk.Value("name")))
	if err != nil || !strings.HasPrefix(path.Clean(name)+"/", k.root+"/") {
		return nil // it manages nothing in this directory
	}
	k.keep(name)
	if !showsAsDir(h, name) {
		return nil
	}
	if chunk.Value("fun") != "recurse" {
		k.trees[path.Clean(name)] = true
		return nil
	}
	r := newRecurse(f)
	call := module.Call{Function: "file.recurse", Arguments: chunk, At: func(string) diag.Pos { return diag.Pos{} }}
	if _, problems := module.Decode(r, call); len(problems) > 0 {
		return problems.Err()
	}
	kept, err := r.keeps(ctx)
	k.keep(kept...)
	return err
}

// look calls decide for all entries of a directory and reports whether any of them stays. It does not descend
// below the depth limit: such a directory is removed unless k.names or a pattern may keep something in it.
func (k *keeper) look(ctx context.Context, h *host.Host, dir string, level int) (stays bool, err error) {
	if descent.TooDeep(dir, level) && !k.names[dir] && len(k.exclude) == 0 {
		return false, nil
	}
	if err := descent.Enter(ctx, dir, level); err != nil {
		return false, err
	}
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		kept, err := k.decide(ctx, h, path.Join(dir, name), level)
		if err != nil {
			return false, err
		}
		stays = stays || kept
	}
	return stays, nil
}

func (k *keeper) decide(ctx context.Context, h *host.Host, p string, level int) (stays bool, err error) {
	if k.trees[p] {
		return true, nil
	}
	relative := strings.TrimPrefix(p, k.root+"/")
	if stays, err = k.exclude.match(relative); err != nil {
		return false, err
	}
	stays = stays || k.names[p]
	info, there, err := look(h.Files.Lstat, p)
	if err != nil || !there {
		return false, err
	}
	before := len(k.tops)
	if info.IsDir() {
		below, err := k.look(ctx, h, p, level+1)
		if vanished(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		stays = stays || below
	}
	if !stays {
		k.all = append(k.all, p)
		k.tops = append(k.tops[:before], p)
	}
	return stays, nil
}
