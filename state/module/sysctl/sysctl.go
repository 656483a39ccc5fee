// Package sysctl implements sysctl.present, which sets a kernel parameter now and at boot.
//
// The present value is in /proc/sys and is set by sysctl(8); the value at boot is a line in a configuration
// file. The kernel is changed first: a value that it rejects is not written to the file. Below a root only the file
// is changed, and the state reports a warning.
package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of sysctl.
func Functions() module.Table {
	return module.Table{"present": func() module.Resource { return &present{} }}
}

// present implements sysctl.present.
type present struct {
	Name   string `sls:"name"`
	Value  any    `sls:"value,required"`
	Config string `sls:"config"` // the path of the file; "" for the default
}

// todo holds the required changes.
type todo struct {
	live     bool   // the value in the kernel must change
	file     string // the new text of the file; "" keeps it
	warnings []string
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := p.Valid(); err != nil {
		return module.Diff{}, err
	}
	t, err := p.todo(h)
	d := module.Diff{Warnings: t.warnings}
	switch {
	case errors.Is(err, errUnknown):
		d.Unknown, d.Planned = true, value.NewMap()
		d.Comment = fmt.Sprintf("the kernel has no setting %s; if an earlier state brings it, it would be set", p.Name)
		return d, nil
	case err != nil:
		return d, err
	case !t.live && t.file == "":
		d.Comment = fmt.Sprintf("%s is %s", p.Name, p.text())
	default:
		d.Changes, d.Planned = value.NewMap(p.Name, p.Value), value.NewMap()
		d.Comment = fmt.Sprintf("%s would be set to %s", p.Name, p.text())
	}
	return d, nil
}

func (p *present) Valid() error {
	if p.Name == "" || strings.ContainsAny(p.Name, " \t\n=#") || strings.Contains("/"+swapped(p.Name)+"/", "/../") {
		return fmt.Errorf("%q is not a valid name of a kernel setting", p.Name)
	}
	if strings.ContainsAny(p.text(), "\r\n") {
		return fmt.Errorf("the value of %s has a line break", p.Name)
	}
	return nil
}

func (p *present) text() string { return value.Str(p.Value) }

// same reports whether v is the declared value. As in the kernel, all sequences of blanks are equal.
func (p *present) same(v string) bool {
	return strings.Join(strings.Fields(v), " ") == strings.Join(strings.Fields(p.text()), " ")
}

// errUnknown is wrapped by the error for an unknown kernel parameter.
var errUnknown = errors.New("the kernel has no such setting")

func (p *present) todo(h *host.Host) (t todo, err error) {
	if h.Kernel.Allowed("setting "+p.Name) != nil {
		t.warnings = []string{"the running kernel is not changed: it is not that of this root"}
	} else {
		now, err := p.now(h)
		if err != nil {
			return t, err
		}
		t.live = !p.same(now)
	}
	text, err := h.Files.ReadFile(p.config(h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	t.file = p.written(string(text), err != nil)
	return t, nil
}

// now returns the value in the kernel.
func (p *present) now(h *host.Host) (string, error) {
	data, err := h.Files.ReadFile("/proc/sys/" + swapped(p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", diag.Setting.Hint(fmt.Errorf("%w: %s", errUnknown, p.Name),
			"check the name with `sysctl -a`, or load the kernel module that has it in a state that this one requires")
	}
	return string(data), err
}

// swapped converts a name to a path: dots become slashes, and slashes dots.
func swapped(name string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

// config returns the path of the configuration file.
func (p *present) config(h *host.Host) string {
	if p.Config != "" {
		return p.Config
	}
	if info, err := h.Files.Stat("/etc/sysctl.d"); err == nil && info.IsDir() {
		return "/etc/sysctl.d/99-salt.conf"
	}
	return "/etc/sysctl.conf"
}

// written returns the text of the file with the parameter set, or "" if it is already set.
func (p *present) written(text string, isNew bool) string {
	if isNew {
		text = "#\n# Kernel sysctl configuration\n#\n"
	}
	line := p.Name + " = " + p.text() + "\n"
	after, found, changed := p.replaced(text, line)
	switch {
	case found && !changed:
		return ""
	case !found && text != "" && !strings.HasSuffix(text, "\n"):
		return after + "\n" + line
	case !found:
		return after + line
	}
	return after
}

// replaced returns a text in which line replaces the lines that set the parameter to another value. found reports
// whether a line sets the parameter, and changed whether one was replaced.
func (p *present) replaced(text, line string) (after string, found, changed bool) {
	var b strings.Builder
	for l := range strings.Lines(text) {
		name, v, ok := strings.Cut(l, "=")
		if ok && strings.TrimSpace(name) == p.Name {
			found = true
			if !p.same(v) {
				l, changed = line, true
			}
		}
		b.WriteString(l)
	}
	return b.String(), found, changed
}

func (p *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	t, err := p.todo(h)
	if err != nil {
		return module.Report{}, err
	}
	report := module.Report{Changes: value.NewMap(p.Name, p.Value),
		Comment: fmt.Sprintf("%s was set to %s", p.Name, p.text())}
	if t.live {
		if report.Warnings, err = p.assign(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	if t.file != "" {
		if err := h.WriteText(p.config(h), t.file); err != nil {
			return module.Report{}, err
		}
	}
	return report, nil
}

// assign changes the value in the kernel. It returns a warning if the kernel returns the value in another form.
func (p *present) assign(ctx context.Context, h *host.Host) (warnings []string, err error) {
	_, err = h.Tool(ctx, host.Tool{
		Argv:    []string{"sysctl", "-w", p.Name + "=" + p.text()},
		Changes: host.Subject{Kind: host.KindSysctl, Name: p.Name}, Package: "procps",
	})
	if err != nil {
		return nil, host.Failed(diag.Setting, err, fmt.Sprintf("setting %s to %s", p.Name, p.text()),
			"see what the kernel takes for it, with `sysctl "+p.Name+"`")
	}
	now, err := p.now(h)
	if err == nil && !p.same(now) {
		warnings = []string{fmt.Sprintf("%s was set to %s and reads as %q: declare that, or each run will set it again",
			p.Name, p.text(), strings.TrimSpace(now))}
	}
	return warnings, err
}
