package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements pkgrepo.absent: it removes a repository and, if keyid is given, its key.
type absent struct {
	Name    string `sls:"name"`
	PPA     string `sls:"ppa"`
	KeyID   any    `sls:"keyid"`
	Refresh bool   `sls:"refresh"`
}

func (r *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if edit, err := editorFor(h, r.editRPM, r.editPacman, r.editAPK); edit != nil || err != nil {
		if err != nil {
			return module.Diff{}, err
		}
		d, err := checkEdit(h, edit, r.Name, "there is no such repository", "would remove %s from %s")
		if !d.Empty() {
			d.Planned = value.NewMap()
		}
		return d, err
	}
	l, want, err := r.job(h)
	if err != nil {
		return module.Diff{}, err
	}
	f, _, found, foreign := l.find(want)
	switch {
	case !found:
		return module.Diff{Comment: "there is no such repository"}, nil
	case foreign:
		return module.Diff{}, diag.Repository.Hint(fmt.Errorf("the repository is in %s", f.path),
			"that format is read but not written; remove the file with file.absent")
	}
	return module.Diff{Changes: r.changes(), Planned: value.NewMap(), Comment: "would remove it from " + f.path}, nil
}

func (r *absent) job(h *host.Host) (*lists, entry, error) {
	want, err := (&managed{Name: r.Name, PPA: r.PPA}).want(h)
	if err != nil {
		return nil, want, err
	}
	l, err := readLists(h)
	if arch := want.option("arch"); arch != "" && err == nil {
		l = l.only(func(e entry) bool { return e.option("arch") == arch })
	}
	return l, want, err
}

func (r *absent) changes() *value.Map {
	m := value.NewMap("repo", redact.URLs(r.Name))
	if ids := r.ids(); len(ids) > 0 {
		m.Set("keyid", ids[0])
	}
	return m
}

func (r *absent) ids() []string { return (&keyed{KeyID: r.KeyID}).keyIDs() }

func (r *absent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if edit, err := editorFor(h, r.editRPM, r.editPacman, r.editAPK); edit != nil || err != nil {
		if err != nil {
			return module.Report{}, err
		}
		return applyEdit(ctx, h, edit, r.Refresh)
	}
	l, want, err := r.job(h)
	if err != nil {
		return module.Report{}, err
	}
	for f, at, found, foreign := l.find(want); found && !foreign; f, at, found, foreign = l.find(want) {
		e := f.lines[at].entry
		e.comps = slices.DeleteFunc(e.comps, func(c string) bool { return slices.Contains(want.comps, c) })
		if len(e.comps) == 0 || len(want.comps) == 0 {
			f.remove(at)
		}
	}
	if err := l.write(h); err != nil {
		return module.Report{}, err
	}
	for _, id := range r.ids() {
		if err := removeKey(h, id); err != nil {
			return module.Report{}, err
		}
	}
	report := module.Report{Changes: d.Changes, Comment: "removed " + redact.URLs(want.String())}
	report.Warnings, err = refreshAfter(ctx, h, r.Refresh)
	return report, err
}

// removeKey removes the file of a key.
func removeKey(h *host.Host, id string) error {
	for _, dir := range []string{"/etc/apt/keyrings", "/etc/apt/trusted.gpg.d"} {
		names, err := h.Files.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for a key: %w", err)
		}
		for _, name := range names {
			file := dir + "/" + name
			data, err := h.Files.ReadFile(file)
			if err != nil || !strings.HasSuffix(name, ".gpg") && !strings.HasSuffix(name, ".asc") {
				continue
			}
			if prints, err := fingerprints(data); err == nil && hasKey(prints, id) {
				return h.Files.Remove(file)
			}
		}
	}
	return nil
}
