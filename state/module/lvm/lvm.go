// Package lvm implements lvm.lv_present and the other lvm states for the physical volumes, volume groups and
// logical volumes of LVM.
//
// A volume is made smaller only with force, since that loses data. Like in Salt, a device becomes a physical
// volume whatever it contains; with force: False it must be empty.
package lvm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of lvm.
func Functions() module.Table {
	return module.Table{
		"pv_present": func() module.Resource { return &pvPresent{Force: true} },
		"pv_absent":  func() module.Resource { return &absent{kind: physical} },
		"vg_present": func() module.Resource { return &vgPresent{} },
		"vg_absent":  func() module.Resource { return &absent{kind: group} },
		"lv_present": func() module.Resource { return &lvPresent{} },
		"lv_absent":  func() module.Resource { return &absent{kind: volume} },
	}
}

// ask runs pvs, vgs or lvs and returns its output as rows of the given fields.
func ask(ctx context.Context, h *host.Host, tool string, fields ...string) ([][]string, error) {
	if err := h.Kernel.Allowed("looking at volumes"); err != nil {
		return nil, err
	}
	out, err := h.Tool(ctx, host.Tool{
		Argv: []string{tool, "--noheadings", "--nosuffix", "--units", "b", "--separator", "|",
			"-o", strings.Join(fields, ",")}, Env: env(), Package: "lvm2",
	})
	if err != nil {
		return nil, host.Failed(diag.Mount, err, "listing volumes", "run `"+tool+"` on the host and read its output")
	}
	var rows [][]string
	for l := range strings.Lines(out) {
		if row := strings.Split(strings.TrimSpace(l), "|"); len(row) == len(fields) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// env returns the variable that suppresses LVM's warnings about open files of the agent.
func env() []string { return []string{"LVM_SUPPRESS_FD_WARNINGS=1"} }

// find returns the first row whose first fields equal key, and whether there is one.
func find(rows [][]string, key ...string) ([]string, bool) {
	i := slices.IndexFunc(rows, func(row []string) bool { return slices.Equal(row[:len(key)], key) })
	if i < 0 {
		return nil, false
	}
	return rows[i], true
}

// run runs a command that changes volumes.
func run(ctx context.Context, h *host.Host, name string, argv ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: argv, Changes: host.Subject{Kind: "volume", Name: name},
		Env: env(), Package: "lvm2"})
	return host.Failed(diag.Mount, err, argv[0]+" of "+name, "see `pvs`, `vgs` and `lvs` on the host")
}

// options returns the remaining arguments as options of the tool.
func options(rest *value.Map) []string {
	var words []string
	if rest == nil {
		return nil
	}
	for key, v := range rest.All() {
		words = append(words, "--"+value.Str(key))
		if v != nil && v != true && v != "" {
			words = append(words, value.Str(v))
		}
	}
	return words
}

func planned(what, name, comment string) module.Diff {
	return module.Diff{Changes: value.NewMap(what, name), Planned: value.NewMap(), Comment: comment}
}

// device returns the path of a device with links resolved, since LVM lists resolved paths.
func device(h *host.Host, path string) string {
	if to, err := h.Files.Resolve(path); err == nil {
		return to
	}
	return path
}

// isPV returns the row of the physical volume at a path, as given or with links resolved, and whether there is one.
func isPV(h *host.Host, rows [][]string, path string) ([]string, bool) {
	if row, ok := find(rows, path); ok {
		return row, true
	}
	return find(rows, device(h, path))
}

// pvPresent implements lvm.pv_present.
type pvPresent struct {
	Name  string     `sls:"name"`
	Force bool       `sls:"force"` // use the device whatever it contains
	Rest  *value.Map `sls:"*"`
}

func (p *pvPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	rows, err := ask(ctx, h, "pvs", "pv_name", "vg_name")
	if err != nil {
		return module.Diff{}, err
	}
	if _, ok := isPV(h, rows, p.Name); ok {
		return module.Diff{Comment: p.Name + " is a physical volume"}, nil
	}
	return planned("created", p.Name, p.Name+" would become a physical volume"), nil
}

func (p *pvPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	answer := map[bool]string{true: "--yes", false: "-qq"}[p.Force]
	argv := append(append([]string{"pvcreate", answer}, options(p.Rest)...), p.Name)
	if err := run(ctx, h, p.Name, argv...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: p.Name + " is a physical volume"}, nil
}

// vgPresent implements lvm.vg_present: a volume group has at least the given devices.
type vgPresent struct {
	Name    string     `sls:"name"`
	Devices []string   `sls:"devices,required"`
	Rest    *value.Map `sls:"*"`

	isNew bool
	add   []string
}

func (v *vgPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	v.Devices = strings.Split(strings.Join(v.Devices, ","), ",")
	groups, err := ask(ctx, h, "vgs", "vg_name")
	if err != nil {
		return module.Diff{}, err
	}
	if _, ok := find(groups, v.Name); !ok {
		v.isNew = true
		return planned("created", v.Name, "the group "+v.Name+" would be made"), nil
	}
	rows, err := ask(ctx, h, "pvs", "pv_name", "vg_name")
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	for _, d := range v.Devices {
		row, ok := isPV(h, rows, d)
		switch {
		case ok && row[1] == v.Name:
		case ok && row[1] != "":
			return module.Diff{}, fmt.Errorf("%s belongs to the group %s", d, row[1])
		default:
			v.add = append(v.add, d)
			changes.Set(d, "added to "+v.Name)
		}
	}
	if len(v.add) == 0 {
		return module.Diff{Comment: "the group " + v.Name + " has its devices"}, nil
	}
	return module.Diff{Changes: changes, Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s would be added to %s", strings.Join(v.add, ", "), v.Name)}, nil
}

func (v *vgPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	argv := append([]string{"vgextend", "-qq", v.Name}, v.add...)
	if v.isNew {
		argv = append(append([]string{"vgcreate", "-qq"}, options(v.Rest)...), append([]string{v.Name}, v.Devices...)...)
	}
	if err := run(ctx, h, v.Name, argv...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "the group " + v.Name + " has its devices"}, nil
}

// bytes parses a size in LVM's notation, such as 10G, 512m or a number of MiB. Units are powers of 1024.
func bytes(size string) (int64, error) {
	text := strings.TrimPrefix(strings.TrimSpace(size), "+")
	for _, unit := range []string{"ib", "b"} { // LVM reads 1GiB and 1GB as 1G
		if n := len(text) - len(unit); n > 1 && strings.EqualFold(text[n:], unit) && text[n-1] > '9' {
			text = text[:n]
			break
		}
	}
	factor := int64(1 << 20)
	if n := len(text); n > 0 {
		if i := strings.IndexByte("bskmgtpe", text[n-1]|0x20); i >= 0 && text[n-1] > '9' {
			text = text[:n-1]
			factor = []int64{1, 512, 1 << 10, 1 << 20, 1 << 30, 1 << 40, 1 << 50, 1 << 60}[i]
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n*float64(factor) > 1<<62 {
		return 0, fmt.Errorf("%q is not a size", size)
	}
	return int64(n * float64(factor)), nil
}
