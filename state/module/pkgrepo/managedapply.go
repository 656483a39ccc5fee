package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// changes returns the changes that Apply will make.
func (r *managed) changes(j repositoryJob) *value.Map {
	if j.old == nil {
		name := r.Name
		if ppa, ok := r.ppa(); ok {
			name = "ppa:" + ppa
		}
		return value.NewMap("repo", redact.URLs(name))
	}
	m := j.old.difference(j.want)
	if j.key {
		m.Set("key", value.NewMap("new", r.placeOf(j.want), "old", nil))
	}
	return m
}

func (r *managed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if edit, err := editorFor(h, r.editRPM, r.editPacman, r.editAPK); edit != nil || err != nil {
		if err != nil {
			return module.Report{}, err
		}
		report, err := applyEdit(ctx, h, edit, r.refreshes(h))
		return report, errors.Join(err, r.importKeys(ctx, h))
	}
	j, err := r.job(h)
	if err != nil {
		return module.Report{}, err
	}
	if err := r.fetchKey(ctx, h, j); err != nil {
		return module.Report{}, err
	}
	if j.differs {
		r.edit(j)
		if err := j.lists.write(h); err != nil {
			return module.Report{}, err
		}
	}
	report := module.Report{Changes: d.Changes, Comment: "set up " + redact.URLs(j.want.String())}
	report.Warnings, err = refreshAfter(ctx, h, r.refreshes(h))
	return report, err
}

// fetchKey installs the key before the repository is configured, so that apt never sees the repository without
// its key.
func (r *managed) fetchKey(ctx context.Context, h *host.Host, j repositoryJob) error {
	ppa, personal := r.ppa()
	if personal && !r.given() {
		id, err := ppaKey(ctx, r.sources, ppa)
		if err != nil {
			return err
		}
		r.KeyID = id
		return r.fetch(ctx, h, r.sources, r.SLSEnv, j.want)
	}
	if !j.key {
		return nil
	}
	return r.fetch(ctx, h, r.sources, r.SLSEnv, j.want)
}

// edit applies the change to the files in memory.
func (r *managed) edit(j repositoryJob) {
	if r.Consolidate {
		j.lists.consolidate()
	}
	file := r.File
	if ppa, ok := r.ppa(); ok && file == "" {
		file = fmt.Sprintf("%s/%s-%s.list", listDir, strings.ReplaceAll(ppa, "/", "-"), j.want.suite)
	}
	if f, at, found, _ := j.lists.find(j.want); found {
		if file == "" || file == f.path {
			f.replace(at, j.want)
			return
		}
		f.lines = slices.Delete(f.lines, at, at+1)
	}
	if file == "" {
		file = mainList
	}
	f := j.lists.file(file)
	if r.CleanFile {
		f.lines = nil
	}
	f.append(j.want)
}

// refreshes reports whether to refresh the indexes afterwards. With zypper, refresh is a setting of the
// repository instead.
func (r *managed) refreshes(h *host.Host) bool {
	wanted := r.Refresh == nil || *r.Refresh || h.Packages.Family() == "zypper"
	return wanted && (r.RefreshDB == nil || *r.RefreshDB) &&
		!(h.Packages.Family() == "zypper" && value.Truth(r.More.Value("gpgautoimport")))
}

// refreshAfter refreshes the indexes if wanted is true and the package manager may run on the host.
func refreshAfter(ctx context.Context, h *host.Host, wanted bool) ([]string, error) {
	if !wanted || h.Packages.Allowed("refreshing the package indexes") != nil {
		return nil, nil
	}
	return h.Packages.Refresh(ctx)
}
