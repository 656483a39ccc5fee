// Package sysctl holds sysctl.present: a setting of the kernel has a value, now and after the next
// boot.
//
// Now is /proc/sys, which sysctl(8) writes; the next boot is a line in a file of settings. The kernel
// is asked first: what it does not take is not written down for the boot either. Below a root there is
// only the file, and a warning says so.
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

// Functions are the functions of sysctl.
func Functions() module.Table {
	return module.Table{"present": func() module.Resource { return &present{} }}
}

// present is sysctl.present.
type present struct {
	Name   string `sls:"name"`
	Value  any    `sls:"value,required"`
	Config string `sls:"config"` // the file; "" for the system's own
}

// todo is what a setting lacks.
type todo struct {
	live     bool   // the kernel has another value
	file     string // the file's text as it has to be; "" if it is as it has to be
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
		return fmt.Errorf("%q is no name of a kernel setting", p.Name)
	}
	if strings.ContainsAny(p.text(), "\r\n") {
		return fmt.Errorf("the value of %s has a line break", p.Name)
	}
	return nil
}

func (p *present) text() string { return value.Str(p.Value) }

// same compares values as the kernel does, to which blanks of any kind and number are one.
func (p *present) same(v string) bool {
	return strings.Join(strings.Fields(v), " ") == strings.Join(strings.Fields(p.text()), " ")
}

// errUnknown says that the kernel has no such setting.
var errUnknown = errors.New("the kernel has no such setting")

func (p *present) todo(h *host.Host) (t todo, err error) {
	if h.Kernel.Allowed("setting "+p.Name) != nil {
		t.warnings = []string{"the running kernel is left as it is: it is not that of this root"}
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

// now is the value that the kernel has.
func (p *present) now(h *host.Host) (string, error) {
	data, err := h.Files.ReadFile("/proc/sys/" + swapped(p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", diag.WithHint(fmt.Errorf("%w: %s", errUnknown, p.Name),
			"check the name with `sysctl -a`, or load the kernel module that has it in a state that this one requires")
	}
	return string(data), err
}

// swapped makes a path of a name: its dots are slashes, and its slashes dots.
func swapped(name string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

// config is the file that the setting is written to.
func (p *present) config(h *host.Host) string {
	if p.Config != "" {
		return p.Config
	}
	if info, err := h.Files.Stat("/etc/sysctl.d"); err == nil && info.IsDir() {
		return "/etc/sysctl.d/99-salt.conf"
	}
	return "/etc/sysctl.conf"
}

// written is the file's text with the setting in it, or "" if it is there already.
func (p *present) written(text string, isNew bool) string {
	if isNew {
		text = "#\n# Kernel sysctl configuration\n#\n"
	}
	line := p.Name + " = " + p.text() + "\n"
	found, changed := false, false
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
	switch {
	case found && !changed:
		return ""
	case !found && text != "" && !strings.HasSuffix(text, "\n"):
		b.WriteString("\n" + line)
	case !found:
		b.WriteString(line)
	}
	return b.String()
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

// assign changes the kernel's value. Some settings read back in another form than they were given in.
func (p *present) assign(ctx context.Context, h *host.Host) (warnings []string, err error) {
	_, err = h.Tool(ctx, host.Tool{
		Argv:    []string{"sysctl", "-w", p.Name + "=" + p.text()},
		Changes: host.Subject{Kind: host.KindSysctl, Name: p.Name}, Package: "procps",
	})
	if err != nil {
		return nil, host.Failed(err, fmt.Sprintf("setting %s to %s", p.Name, p.text()),
			"see what the kernel takes for it, with `sysctl "+p.Name+"`")
	}
	now, err := p.now(h)
	if err == nil && !p.same(now) {
		warnings = []string{fmt.Sprintf("%s was set to %s and reads as %q: declare that, or each run will set it again",
			p.Name, p.text(), strings.TrimSpace(now))}
	}
	return warnings, err
}
