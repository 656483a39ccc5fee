package lvm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// lvPresent implements lvm.lv_present: a logical volume exists and has a size.
type lvPresent struct {
	Name       string     `sls:"name"`
	Group      string     `sls:"vgname,required"`
	Size       string     `sls:"size"`
	Extents    string     `sls:"extents"`
	Snapshot   string     `sls:"snapshot"` // the name of the snapshot; Name is its origin
	PV         string     `sls:"pv"`
	ThinVolume bool       `sls:"thinvolume"`
	ThinPool   any        `sls:"thinpool"` // True: the volume is a pool; a name: it is a thin volume in that pool
	Force      bool       `sls:"force"`
	ResizeFS   bool       `sls:"resizefs"`
	Rest       *value.Map `sls:"*"`

	resize bool
}

// pool returns the pool of a thin volume, and whether the volume is a pool itself.
func (l *lvPresent) pool() (name string, itself bool) {
	switch v := l.ThinPool.(type) {
	case string:
		switch strings.ToLower(v) {
		case "", "false", "no", "none":
			return "", false
		case "true", "yes":
			return "", true
		}
		return path.Base(v), false // vgname already names the group
	default:
		return "", value.Truth(v)
	}
}

func (l *lvPresent) Valid() error {
	if strings.Contains(l.Size, "%") && l.Extents == "" { // lvcreate accepts a percentage only as a number of extents
		l.Size, l.Extents = "", strings.TrimSpace(l.Size)
	}
	_, itself := l.pool()
	switch {
	case l.Size != "" && l.Extents != "":
		return errors.New("size and extents say the same, and only one of them can be given")
	case l.Size == "" && l.Extents == "":
		return diag.Argument.Hint(fmt.Errorf("the volume %s has no size", l.Name), "add `- size: 10G`, or extents")
	case l.ThinVolume && itself:
		return errors.New("a volume is thin, or it is the pool of thin ones, and not both")
	}
	if l.Size != "" {
		_, err := bytes(l.Size)
		return err
	}
	return nil
}

// names returns the group and the volume that the state manages.
func (l *lvPresent) names() (group, volume string) {
	group, _, _ = strings.Cut(l.Group, "/") // for a thin volume, vgname is group/pool
	if l.Snapshot != "" {
		return group, l.Snapshot
	}
	return group, l.Name
}

func (l *lvPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := l.Valid(); err != nil {
		return module.Diff{}, err
	}
	rows, err := ask(ctx, h, "lvs", "vg_name", "lv_name", "lv_size", "vg_extent_size")
	if err != nil {
		return module.Diff{}, err
	}
	group, name := l.names()
	row, ok := find(rows, group, name)
	if !ok {
		return planned("created", name, fmt.Sprintf("the volume %s would be made in %s", name, group)), nil
	}
	return l.compare(row)
}

// compare compares the size of an existing volume with the declared size, rounded up to whole extents. A
// percentage cannot be compared.
func (l *lvPresent) compare(row []string) (module.Diff, error) {
	group, name := l.names()
	have, err := strconv.ParseInt(row[2], 10, 64)
	if err != nil {
		return module.Diff{}, fmt.Errorf("lvs gives the size %q", row[2])
	}
	extent, err := strconv.ParseInt(row[3], 10, 64)
	if err != nil || extent <= 0 {
		return module.Diff{}, fmt.Errorf("lvs gives the extent size %q", row[3])
	}
	want := have
	if l.Size != "" {
		if want, err = bytes(l.Size); err != nil {
			return module.Diff{}, err
		}
		want = (want + extent - 1) / extent * extent
	} else if n, err := strconv.ParseInt(l.Extents, 10, 64); err == nil {
		want = n * extent
	} else if !strings.Contains(l.Extents, "%") {
		return module.Diff{}, fmt.Errorf("%q is not a number of extents", l.Extents)
	}
	switch {
	case want == have:
		return module.Diff{Comment: fmt.Sprintf("the volume %s is in %s", name, group)}, nil
	case want < have && !l.Force:
		return module.Diff{},
			diag.Mount.Hint(fmt.Errorf("the volume %s has %d bytes, and %d were declared: what is behind them would be lost",
				name, have, want),
				"set `- force: True` to reduce it anyway, after reducing its file system")
	}
	l.resize = true
	return planned("resized", name, fmt.Sprintf("the volume %s would get %d bytes instead of %d", name, want, have)), nil
}

func (l *lvPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	group, name := l.names()
	argv := l.create()
	if l.resize {
		argv = append([]string{"lvresize", l.quietly()}, l.size("-L")...)
		if l.ResizeFS {
			argv = append(argv, "--resizefs")
		}
		argv = append(argv, group+"/"+name)
	}
	if err := run(ctx, h, group+"/"+name, argv...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("the volume %s is in %s", name, group)}, nil
}

// quietly returns the option that answers the questions of a tool: yes with force, otherwise no.
func (l *lvPresent) quietly() string {
	if l.Force {
		return "--yes"
	}
	return "-qq"
}

func (l *lvPresent) size(flag string) []string {
	if l.Size != "" {
		return []string{flag, l.Size}
	}
	return []string{"-l", l.Extents}
}

func (l *lvPresent) create() []string {
	argv := []string{"lvcreate", l.quietly()}
	group, name := l.names()
	pool, itself := l.pool()
	switch {
	case pool != "":
		argv = append(append(argv, "-n", name, "--thinpool", pool), l.size("-V")...)
		return append(append(argv, options(l.Rest)...), group)
	case l.ThinVolume:
		argv = append(append(argv, "--thin", "-n", name), l.size("-V")...)
		return append(append(argv, options(l.Rest)...), l.Group)
	case itself:
		argv = append(argv, "--thinpool", name)
	default:
		argv = append(argv, "-n", name)
	}
	argv = append(append(argv, l.size("-L")...), options(l.Rest)...)
	if l.Snapshot != "" {
		return append(argv, "-s", group+"/"+l.Name)
	}
	argv = append(argv, l.Group)
	if l.PV != "" {
		argv = append(argv, l.PV)
	}
	return argv
}

// The kinds of objects that can be absent.
const (
	physical = "physical volume"
	group    = "group"
	volume   = "volume"
)

// absent implements lvm.pv_absent, vg_absent and lv_absent.
type absent struct {
	Name  string `sls:"name"`
	Group string `sls:"vgname"` // the group of a logical volume

	kind string
}

func (a *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var rows [][]string
	var err error
	found := false
	switch a.kind {
	case physical:
		rows, err = ask(ctx, h, "pvs", "pv_name", "vg_name")
		_, found = isPV(h, rows, a.Name)
	case group:
		rows, err = ask(ctx, h, "vgs", "vg_name")
		_, found = find(rows, a.Name)
	default:
		if a.Group == "" {
			return module.Diff{}, diag.Argument.Hint(fmt.Errorf("the volume %s has no group", a.Name), "add `- vgname: ...`")
		}
		rows, err = ask(ctx, h, "lvs", "vg_name", "lv_name")
		_, found = find(rows, a.Group, a.Name)
	}
	if err != nil || !found {
		return module.Diff{Comment: fmt.Sprintf("there is no %s %s", a.kind, a.Name)}, err
	}
	return planned("removed", a.Name, fmt.Sprintf("the %s %s would be removed", a.kind, a.Name)), nil
}

func (a *absent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	argv := map[string][]string{
		physical: {"pvremove", "--yes", a.Name}, group: {"vgremove", "-f", a.Name},
		volume: {"lvremove", "-f", a.Group + "/" + a.Name},
	}[a.kind]
	if err := run(ctx, h, a.Name, argv...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("the %s %s was removed", a.kind, a.Name)}, nil
}
