package file

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// touch implements file.touch: it creates a file or updates its times.
type touch struct {
	Name     string   `sls:"name"`
	Accessed *float64 `sls:"atime"` // in seconds since 1970
	Modified *float64 `sls:"mtime"`
	MakeDirs bool     `sls:"makedirs"`

	there bool
	info  host.Info
}

// ActsAlways reports whether no modification time is given, so that every run touches the file.
func (t *touch) ActsAlways() bool { return t.Modified == nil }

func (t *touch) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", t.Name)
	if err != nil {
		return module.Diff{}, err
	}
	t.Name = name
	if t.info, t.there, err = look(h.Files.Stat, name); err != nil {
		return module.Diff{}, err
	}
	switch {
	case !t.there:
		d := module.Diff{Changes: value.NewMap("new", name), Comment: "would make " + name}
		if !t.MakeDirs && !isDir(h, path.Dir(name)) {
			d.Missing = append(d.Missing, noParent(h, name))
		}
		return d, nil
	case t.timely():
		return module.Diff{Comment: name + " has these times already"}, nil
	}
	return module.Diff{Changes: value.NewMap("touched", name), Comment: "would set the times of " + name}, nil
}

// timely reports whether the file has the given modification time. The access time is not compared, since every
// reader changes it. Without a given time, a file is touched in every run.
func (t *touch) timely() bool {
	return t.Modified != nil && seconds(t.Modified, time.Time{}).Equal(t.info.Modified)
}

func seconds(s *float64, otherwise time.Time) time.Time {
	if s == nil {
		return otherwise
	}
	whole := int64(*s)
	return time.Unix(whole, int64((*s-float64(whole))*1e9))
}

func (t *touch) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if !t.there {
		if err := t.make(h); err != nil {
			return module.Report{}, err
		}
	}
	target, err := h.Files.Resolve(t.Name)
	if err != nil {
		return module.Report{}, err
	}
	now := time.Now()
	if err := h.Files.Chtimes(target, seconds(t.Accessed, now), seconds(t.Modified, now)); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "touched " + t.Name}, nil
}

func (t *touch) make(h *host.Host) error {
	if !isDir(h, path.Dir(t.Name)) {
		if !t.MakeDirs {
			return noParent(h, t.Name)
		}
		if err := parents(h, t.Name, unchanged()); err != nil {
			return err
		}
	}
	return h.Files.Write(t.Name, host.NewFile{Content: strings.NewReader(""), UID: -1, GID: -1})
}

// unchanged returns perms that change neither owner nor mode.
func unchanged() perms { return perms{owner: owner{uid: -1, gid: -1}} }
