package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// systemd runs the units of a machine that systemd booted. It is asked over D-Bus: once for all
// units and once for all unit files, and again after something changed. Connections are made when
// they are needed, since making one takes less than a millisecond and a kept one would have to be
// closed by somebody.
type systemd struct {
	files    Files
	commands Commands

	mu     sync.Mutex
	loaded map[string]dbus.UnitStatus // by name; nil when not read
	disk   map[string]dbus.UnitFile
}

// callTimeout is how long systemd may take for an answer; jobs may take as long as their units allow.
const callTimeout = 30 * time.Second

func (s *systemd) forget() {
	s.mu.Lock()
	s.loaded, s.disk = nil, nil
	s.mu.Unlock()
}

// connected calls with a connection to systemd: over the bus or, for root and without a bus, to
// systemd's own socket.
func (s *systemd) connected(ctx context.Context, call func(*dbus.Conn) error) error {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return diag.WithHint(fmt.Errorf("talking to systemd: %w", err), "check that dbus runs; root can do without")
	}
	defer conn.Close()
	return call(conn)
}

// lists reads both lists unless they are known.
func (s *systemd) lists(ctx context.Context) (map[string]dbus.UnitStatus, map[string]dbus.UnitFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded != nil {
		return s.loaded, s.disk, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var units []dbus.UnitStatus
	var unitFiles []dbus.UnitFile
	err := s.connected(ctx, func(c *dbus.Conn) (err error) {
		if units, err = c.ListUnitsContext(ctx); err == nil {
			unitFiles, err = c.ListUnitFilesContext(ctx)
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listing units: %w", err)
	}
	s.loaded, s.disk = make(map[string]dbus.UnitStatus, len(units)), make(map[string]dbus.UnitFile, len(unitFiles))
	for _, u := range units {
		s.loaded[u.Name] = u
	}
	for _, f := range unitFiles {
		s.disk[path.Base(f.Path)] = f
	}
	return s.loaded, s.disk, nil
}

func (s *systemd) names(ctx context.Context) ([]string, error) {
	_, disk, err := s.lists(ctx)
	names := make([]string, 0, len(disk))
	for name := range disk {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

func (s *systemd) unit(ctx context.Context, name, _ string) (Unit, error) {
	loaded, disk, err := s.lists(ctx)
	if err != nil {
		return Unit{}, err
	}
	u := Unit{Name: unitName(name)}
	u.Masked, u.MaskedRuntime = masks(s.files, u.Name)
	status, isLoaded := loaded[u.Name]
	file, onDisk := disk[u.Name]
	switch {
	case !onDisk || file.Type == "alias":
		// The lists have no instances of templates, and of aliases only the file.
		return u, s.describe(ctx, &u)
	case isLoaded:
		u.Active = status.ActiveState
	default:
		u.Active = "inactive"
	}
	u.Found, u.Boot = true, file.Type
	s.initScript(&u)
	return u, nil
}

// describe asks for a single unit, which makes systemd load it.
func (s *systemd) describe(ctx context.Context, u *Unit) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	properties, err := s.properties(ctx, u.Name)
	if err != nil {
		return fmt.Errorf("looking at unit %s: %w", u.Name, err)
	}
	u.Found = properties.text("LoadState") != "not-found"
	u.Active, u.Boot = properties.text("ActiveState"), properties.text("UnitFileState")
	s.initScript(u)
	return nil
}

// initScript corrects what is said of a unit that was made from a SysV init script: its links in the
// directories of the runlevels decide whether it starts.
func (s *systemd) initScript(u *Unit) {
	if u.Boot == "generated" && isInitScript(s.files, scriptName(u.Name)) {
		u.Boot = scriptAtBoot(s.files, scriptName(u.Name))
	}
}

// masks reports whether a unit is masked, for good and until the next boot.
func masks(files Files, unit string) (always, runtime bool) {
	masked := func(dir string) bool {
		target, err := files.Readlink(dir + "/systemd/system/" + unit)
		return err == nil && target == "/dev/null"
	}
	return masked("/etc"), masked("/run")
}

type properties map[string]any

func (p properties) text(name string) string {
	v, _ := p[name].(string)
	return v
}

func (s *systemd) properties(ctx context.Context, unit string) (p properties, err error) {
	err = s.connected(ctx, func(c *dbus.Conn) error {
		all, err := c.GetUnitPropertiesContext(ctx, unit)
		p = all
		return err
	})
	return p, err
}

func (s *systemd) setBoot(ctx context.Context, verb BootVerb, name string, runtime bool) error {
	unit := unitName(name)
	if (verb == Enable || verb == Disable) && s.isOnlyInitScript(ctx, unit) {
		return switchScript(ctx, s.commands, verb, scriptName(unit))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.connected(ctx, func(c *dbus.Conn) error {
		if err := change(ctx, c, verb, []string{unit}, runtime); err != nil {
			return err
		}
		return c.ReloadContext(ctx)
	})
	return explainBus(err, string(verb), unit)
}

func change(ctx context.Context, c *dbus.Conn, verb BootVerb, unit []string, runtime bool) (err error) {
	switch verb {
	case Enable:
		_, _, err = c.EnableUnitFilesContext(ctx, unit, runtime, false)
	case Disable:
		_, err = c.DisableUnitFilesContext(ctx, unit, runtime)
	case Mask:
		_, err = c.MaskUnitFilesContext(ctx, unit, runtime, false)
	case Unmask:
		_, err = c.UnmaskUnitFilesContext(ctx, unit, runtime)
	}
	return err
}

// isOnlyInitScript reports whether a unit has no file of its own but an init script.
func (s *systemd) isOnlyInitScript(ctx context.Context, unit string) bool {
	_, disk, err := s.lists(ctx)
	file, onDisk := disk[unit]
	return err == nil && (!onDisk || file.Type == "generated") && isInitScript(s.files, scriptName(unit))
}

// explainBus gives an error of systemd its hint.
func explainBus(err error, what, unit string) error {
	var failed godbus.Error
	if err == nil {
		return nil
	}
	text := fmt.Errorf("%s of %s: %w", what, unit, err)
	if !errors.As(err, &failed) {
		return text
	}
	switch name := strings.TrimPrefix(failed.Name, "org.freedesktop."); name {
	case "systemd1.NoSuchUnit", "DBus.Error.FileNotFound":
		return fmt.Errorf("%w: %s", errNoUnit, unit)
	case "systemd1.UnitMasked":
		return diag.WithHint(text, "unmask it first: service.unmasked, or unmask: True")
	case "systemd1.LoadFailed", "systemd1.BadUnitSetting":
		return diag.WithHint(text, "mend its unit file; `systemd-analyze verify %s` shows what is wrong", unit)
	case "systemd1.JobTypeNotApplicable":
		return diag.WithHint(text, "this unit cannot do that; a unit without ExecReload= can only restart")
	case "DBus.Error.AccessDenied", "DBus.Error.InteractiveAuthorizationRequired":
		return diag.WithHint(text, "run the agent as root")
	}
	return text
}
