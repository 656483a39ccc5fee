package file

import (
	"context"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cleaning are the arguments that say what may stay in a directory.
type cleaning struct {
	Clean      bool        `sls:"clean"`
	ExcludePat []string    `sls:"exclude_pat"`
	Required   *value.List `sls:"__required__"` // the chunks of the states this one requires
}

// keeper knows what stays when a directory is cleaned.
type keeper struct {
	names   map[string]bool // and all directories above them
	trees   map[string]bool // with all that is in them
	exclude patterns
	root    string
	all     []string // what goes
	tops    []string // of that, what is in a directory that stays
}

// unwanted lists what is in a directory and was put there by nobody that this state requires, nor
// is in keep or in a pattern. tops are those whose directory stays. A directory with anything in it
// that stays, stays.
func (c cleaning) unwanted(ctx context.Context, h *host.Host, f *family, dir string, keep []string) (all, tops []string, err error) {
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

// keepStep keeps what another file state makes: a file, a directory with all that is in it, or what
// a recurse brings and no more.
func (k *keeper) keepStep(ctx context.Context, h *host.Host, f *family, chunk *value.Map) error {
	name, err := absolute(h, "name", value.Str(chunk.Value("name")))
	if err != nil || !strings.HasPrefix(path.Clean(name)+"/", k.root+"/") {
		return nil // what that state makes is not in here
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

// look decides about all that is in a directory and reports whether anything stays. What lies too deep is not looked at, and
// goes with the directory above where nothing says that some of it stays.
func (k *keeper) look(ctx context.Context, h *host.Host, dir string, level int) (stays bool, err error) {
	if host.TooDeep(dir, level) && !k.names[dir] && len(k.exclude) == 0 {
		return false, nil
	}
	if err := host.Descend(ctx, dir, level); err != nil {
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
	info, err := h.Files.Lstat(p)
	if err != nil {
		return false, err
	}
	before := len(k.tops)
	if info.IsDir() {
		below, err := k.look(ctx, h, p, level+1)
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
