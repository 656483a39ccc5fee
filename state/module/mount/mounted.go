package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mountedState implements mount.mounted: a file system is mounted now and at boot.
type mountedState struct {
	optionRules
	Name        string   `sls:"name"`
	Device      string   `sls:"device,required"`
	FSType      string   `sls:"fstype,required"`
	Mkmnt       bool     `sls:"mkmnt"`
	Opts        []string `sls:"opts"`
	Dump        int      `sls:"dump"`
	Pass        int      `sls:"pass_num"`
	Config      string   `sls:"config"`
	Persist     bool     `sls:"persist"`
	Mount       bool     `sls:"mount"`
	User        string   `sls:"user"`
	MatchOn     []string `sls:"match_on"`
	DeviceRegex []string `sls:"device_name_regex"` // patterns of other device names that are acceptable

	todo
}

// todo holds the required changes, in the order of their application.
type todo struct {
	mkdir, umount, remount, mount bool
	table                         string // the new text of fstab; "" keeps it
	changes                       *value.Map
	warnings                      []string
}

func newMounted() *mountedState {
	return &mountedState{Opts: []string{"defaults"}, Config: "/etc/fstab", Persist: true, Mount: true}
}

func (m *mountedState) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := m.plan(h); err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Comment: m.Name + " is as declared", Warnings: m.warnings}
	if m.changes.Len() > 0 {
		d.Changes, d.Planned, d.Comment = m.changes, value.NewMap(), m.describe()
	}
	return d, nil
}

// describe returns the comment of a dry run.
func (m *mountedState) describe() string {
	var parts []string
	for _, p := range []struct {
		on   bool
		text string
	}{{m.mkdir, "made"}, {m.umount, "unmounted"}, {m.mount, "mounted"}, {m.remount, "remounted with other options"},
		{m.table != "", "written to " + m.Config}} {
		if p.on {
			parts = append(parts, p.text)
		}
	}
	return m.Name + " would be " + strings.Join(parts, ", ")
}

// Valid returns an error for arguments that cannot be part of an entry in fstab.
func (m *mountedState) Valid() error {
	if !path.IsAbs(m.Name) {
		return fmt.Errorf("%q is not an absolute path to mount to", m.Name)
	}
	for what, text := range map[string]string{"name": m.Name, "device": m.Device, "fstype": m.FSType,
		"opts": strings.Join(m.Opts, ",")} {
		if text == "" || strings.ContainsAny(text, "\n\r") {
			return fmt.Errorf("the argument %s is %q, which cannot be part of a mount", what, text)
		}
	}
	return nil
}

func (m *mountedState) plan(h *host.Host) error {
	if err := m.Valid(); err != nil {
		return err
	}
	m.todo = todo{changes: value.NewMap()}
	if len(m.Name) > 1 {
		m.Name = strings.TrimRight(m.Name, "/")
	}
	m.Opts = split(m.Opts)
	skipped := h.Kernel.Allowed("mounting " + m.Name)
	switch {
	case !m.Mount && !m.Mkmnt:
	case !m.Mount:
		m.planDirectory(h)
	case skipped == nil:
		if err := m.planMount(h); err != nil {
			return err
		}
	case !m.Persist:
		return skipped
	default:
		m.warnings = []string{m.Name + " is not mounted now: only a running system mounts"}
	}
	return m.planTable(h)
}

// planDirectory plans the creation of a missing mount point.
func (m *mountedState) planDirectory(h *host.Host) {
	if _, err := h.Files.Stat(m.Name); errors.Is(err, fs.ErrNotExist) {
		m.mkdir = true
		m.changes.Set("mkmnt", true)
	}
}

// planMount compares the mounted file system with the declaration.
func (m *mountedState) planMount(h *host.Host) error {
	all, err := active(h)
	if err != nil {
		return err
	}
	now, ok := all[real(h, m.Name)]
	if !ok {
		_, err := h.Files.Stat(m.Name)
		m.mkdir, m.mount = m.Mkmnt && errors.Is(err, fs.ErrNotExist), true
		m.changes.Set("mount", true)
		return nil
	}
	other, err := m.otherDevice(h, all, now)
	if err != nil {
		return err
	}
	missing := m.missing(h, m.Opts, now, m.FSType)
	switch {
	case other:
		m.umount, m.mount = true, true
		m.changes.Set("umount", fmt.Sprintf("Forced unmount because devices don't match. Wanted: %s, current: %s",
			m.Device, now.device))
		m.changes.Set("mount", true)
	case len(missing) == 0:
	case m.FSType == "nfs" || m.FSType == "cvfs" || strings.HasPrefix(m.FSType, "fuse"):
		m.umount, m.mount = true, true
		m.changes.Set("umount", fmt.Sprintf("Forced unmount and mount because options (%s) changed",
			strings.Join(missing, ",")))
	default:
		m.remount = true
		m.changes.Set("umount", fmt.Sprintf("Forced remount because options (%s) changed", strings.Join(missing, ",")))
	}
	return nil
}

// otherDevice reports whether another device is mounted.
func (m *mountedState) otherDevice(h *host.Host, all map[string]mounted, now mounted) (bool, error) {
	for _, pattern := range m.DeviceRegex {
		re, err := regexp.Compile("^(?:" + pattern + ")")
		if err != nil {
			return false, fmt.Errorf("device_name_regex: %w", err)
		}
		if re.MatchString(now.device) {
			return false, nil
		}
	}
	if slices.Contains(m.Opts, "bind") || slices.Contains(m.Opts, "rbind") {
		return m.otherBind(h, all, now), nil
	}
	names := devices(h, m.Device)
	return !slices.Contains(names, now.device) && !slices.Contains(names, real(h, now.device)), nil
}

// otherBind reports whether the mount has another file system or directory than the source of the declared bind mount.
func (m *mountedState) otherBind(h *host.Host, all map[string]mounted, now mounted) bool {
	source := real(h, m.Device)
	for at := source; ; at = path.Dir(at) {
		if of, ok := all[at]; ok {
			return now.device != of.device || path.Clean(now.root) != path.Join(of.root, strings.TrimPrefix(source, at))
		}
		if at == "/" {
			return true
		}
	}
}

// planTable compares fstab with the declaration.
func (m *mountedState) planTable(h *host.Host) error {
	if !m.Persist {
		return nil
	}
	e := entry{escaped(m.Device), escaped(m.Name), m.FSType, escaped(strings.Join(m.Opts, ",")),
		fmt.Sprint(m.Dump), fmt.Sprint(m.Pass)}
	matches, err := criteria(e, m.MatchOn)
	if err != nil {
		return err
	}
	t, err := openTable(h, m.Config)
	if err != nil {
		return err
	}
	text, what := t.with(e, matches, false)
	if word := map[string]string{"new": "new", "change": "update"}[what]; word != "" {
		m.changes.Set("persist", word)
		m.table = text
	}
	return nil
}

func (m *mountedState) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := m.plan(h); err != nil {
		return module.Report{}, err
	}
	if _, err := h.Files.Stat(m.Name); m.mount && !m.mkdir && errors.Is(err, fs.ErrNotExist) {
		return module.Report{}, host.Gone(m.Name, diag.Mount.Hint(fmt.Errorf("there is no directory %s to mount to", m.Name),
			"set `- mkmnt: True`, or make it in a state that this one requires"))
	}
	done, err := m.act(ctx, h)
	if err != nil {
		return module.Report{Changes: done}, err
	}
	if m.table != "" {
		if err := h.WriteText(m.Config, m.table); err != nil {
			return module.Report{Changes: done}, err
		}
	}
	return module.Report{Changes: m.changes, Comment: m.Name + " is as declared"}, nil
}

// act changes the mounts. It returns the changes made before an error.
func (m *mountedState) act(ctx context.Context, h *host.Host) (done *value.Map, err error) {
	done = value.NewMap()
	if m.mkdir {
		if err := h.MkdirAll(m.Name); err != nil {
			return done, err
		}
	}
	if m.umount {
		if err := unmount(ctx, h, m.Name, m.User); err != nil {
			return done, err
		}
		done.Set("umount", m.changes.Value("umount"))
	}
	opts := m.Opts
	if m.remount {
		opts = append(slices.DeleteFunc(slices.Clone(opts), func(o string) bool { return o == "remount" }), "remount")
	}
	if m.mount || m.remount {
		err = m.mountWith(ctx, h, opts)
	}
	return done, err
}

// Watched returns a state that remounts the file system.
func (m *mountedState) Watched() module.Resource { return &again{m} }

// again implements the reaction of mount.mounted to a change of a watched state: it remounts the file system, which
// applies the options again.
type again struct{ *mountedState }

func (a *again) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Kernel.Allowed("mounting " + a.Name); err != nil {
		return module.Diff{}, err
	}
	return module.Diff{Changes: value.NewMap("remount", true), Planned: value.NewMap(), Comment: a.Name +
		" would be remounted"}, nil
}

func (a *again) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	err := a.mountWith(ctx, h, append(split(a.Opts), "remount"))
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: a.Name + " was remounted"}, nil
}
