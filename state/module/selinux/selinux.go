// Package selinux implements selinux.mode and selinux.boolean, which set the mode of SELinux and the booleans
// of its policy.
package selinux

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

// Functions returns the functions of selinux.
func Functions() module.Table {
	return module.Table{
		"mode":    func() module.Resource { return &mode{} },
		"boolean": func() module.Resource { return &boolean{} },
	}
}

const (
	config   = "/etc/selinux/config"
	enforced = "/sys/fs/selinux/enforce"
)

// mode implements selinux.mode: it sets the present mode, as far as that can change without a reboot, and the
// mode at boot.
type mode struct {
	Name string `sls:"name"`

	live bool   // the present mode must change
	text string // the new text of the file; "" keeps it
}

func (m *mode) wanted() (string, error) {
	switch strings.ToLower(m.Name) {
	case "1", "e", "enforcing":
		return "Enforcing", nil
	case "0", "p", "permissive":
		return "Permissive", nil
	case "d", "disabled":
		return "Disabled", nil
	}
	return "", diag.Argument.Hint(fmt.Errorf("%q is not a mode of SELinux", m.Name),
		"modes are enforcing, permissive and disabled")
}

func (m *mode) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	wanted, err := m.wanted()
	if err != nil {
		return module.Diff{}, err
	}
	data, err := h.Files.ReadFile(config)
	if errors.Is(err, fs.ErrNotExist) {
		return module.Diff{}, diag.Setting.Hint(errors.New("this host has no SELinux"),
			"it takes a kernel with it and a policy, such as selinux-policy-default")
	}
	if err != nil {
		return module.Diff{}, err
	}
	old := m.planFile(string(data), wanted)
	if now, ok := running(h); ok && h.Kernel.Allowed("setting the mode of SELinux") == nil {
		// Disabling and enabling SELinux requires a reboot.
		if m.live = now != wanted && now != "Disabled" && wanted != "Disabled"; m.live {
			old = now
		}
	}
	if !m.live && m.text == "" {
		return module.Diff{Comment: "SELinux is " + wanted}, nil
	}
	return module.Diff{Changes: value.NewMap("old", old, "new", wanted), Comment: "SELinux would be " + wanted}, nil
}

// running returns the present mode, and whether the kernel provides it.
func running(h *host.Host) (string, bool) {
	data, err := h.Files.ReadFile(enforced)
	if err != nil {
		return "Disabled", err == nil
	}
	return map[bool]string{true: "Enforcing", false: "Permissive"}[strings.TrimSpace(string(data)) == "1"], true
}

// planFile computes the new text of the file and returns the mode in it.
func (m *mode) planFile(text, wanted string) (old string) {
	lines := strings.SplitAfter(text, "\n")
	line := "SELINUX=" + strings.ToLower(wanted) + "\n"
	for i, l := range lines {
		v, ok := strings.CutPrefix(strings.TrimSpace(l), "SELINUX=")
		if !ok {
			continue
		}
		if v = strings.ToLower(strings.TrimSpace(v)); v != strings.ToLower(wanted) {
			lines[i], m.text = line, "changed"
		}
		old = strings.ToUpper(v[:min(1, len(v))]) + v[min(1, len(v)):]
		if m.text != "" {
			m.text = strings.Join(lines, "")
		}
		return old
	}
	m.text = text + line
	return "unknown"
}

func (m *mode) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if m.live {
		flag := map[any]string{"Enforcing": "1", "Permissive": "0"}[d.Changes.Value("new")]
		_, err := h.Tool(ctx, host.Tool{Argv: []string{"setenforce", flag},
			Changes: host.Subject{Kind: "selinux", Name: "mode"}, Package: "selinux-utils, or libselinux-utils"})
		if err != nil {
			return module.Report{}, host.Failed(diag.Setting, err, "setting the mode of SELinux", "see `sestatus` on the host")
		}
	}
	if m.text != "" {
		if err := h.WriteText(config, m.text); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "SELinux is " + value.Str(d.Changes.Value("new"))}, nil
}

// boolean implements selinux.boolean.
type boolean struct {
	Name    string `sls:"name"`
	Value   any    `sls:"value,required"`
	Persist bool   `sls:"persist"` // also at boot
}

func (b *boolean) wanted() (string, error) {
	if b.Value != nil {
		switch strings.ToLower(value.Str(b.Value)) {
		case "1", "on", "yes", "true":
			return "on", nil
		case "0", "off", "no", "false":
			return "off", nil
		}
	}
	return "", fmt.Errorf("the value of %s is %s, and on or off was expected", b.Name, value.Repr(b.Value))
}

// look returns the state and the default of a boolean, which semanage lists in one line: name (on , off)
// description.
func (b *boolean) look(ctx context.Context, h *host.Host) (state, fallback string, err error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"semanage", "boolean", "-l"},
		Package: "policycoreutils-python-utils"})
	if err != nil {
		return "", "", host.Failed(diag.Setting, err, "listing the switches of SELinux", "see `sestatus` on the host")
	}
	var names []string
	for l := range strings.Lines(out) {
		name, rest, ok := strings.Cut(l, "(")
		if name = strings.TrimSpace(name); !ok || name == "" {
			continue
		}
		names = append(names, name)
		if pair, _, ok := strings.Cut(rest, ")"); ok && name == b.Name {
			state, fallback, _ = strings.Cut(pair, ",")
			return strings.TrimSpace(state), strings.TrimSpace(fallback), nil
		}
	}
	return "", "", diag.Setting.Hint(fmt.Errorf("SELinux has no switch %s", b.Name),
		"%s", orElse(diag.DidYouMean(b.Name, names), "`semanage boolean -l` lists them"))
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (b *boolean) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	wanted, err := b.wanted()
	if err != nil {
		return module.Diff{}, err
	}
	if err := h.Kernel.Allowed("setting a switch of SELinux"); err != nil {
		return module.Diff{}, err
	}
	state, fallback, err := b.look(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if state == wanted && (!b.Persist || fallback == wanted) {
		return module.Diff{Comment: b.Name + " is " + wanted}, nil
	}
	changes := value.NewMap("State", value.NewMap("old", state, "new", wanted))
	if b.Persist && fallback != wanted {
		changes.Set("Default", value.NewMap("old", fallback, "new", wanted))
	}
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: b.Name + " would be " + wanted}, nil
}

func (b *boolean) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	wanted, err := b.wanted()
	if err != nil {
		return module.Report{}, err
	}
	argv := []string{"setsebool", b.Name, wanted}
	if b.Persist {
		argv = []string{"setsebool", "-P", b.Name, wanted}
	}
	_, err = h.Tool(ctx, host.Tool{Argv: argv, Changes: host.Subject{Kind: "selinux", Name: b.Name},
		Package: "policycoreutils"})
	if err != nil {
		return module.Report{}, host.Failed(diag.Setting, err, "setting "+b.Name, "see `sestatus` on the host")
	}
	return module.Report{Changes: d.Changes, Comment: b.Name + " is " + wanted}, nil
}
