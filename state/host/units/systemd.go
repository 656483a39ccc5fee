package units

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// systemd is the init system of a machine that systemd booted. It queries systemd over D-Bus: once in a run for all
// loaded units, and for the file of a unit when it is needed. It queries the list of all files only to list the
// services and to find similar names: the list takes a quarter of a second, and one file less than a millisecond.
type systemd struct {
	files    host.Files
	commands host.Commands
	own      *host.OwnUnit // nil outside of a run

	// stale is true if a file of systemd was changed since systemd loaded its files. They are reloaded before an
	// operation on a unit and at the end of a run.
	stale atomic.Bool

	mu     sync.Mutex
	conn   *dbus.Conn                 // for queries; closed when the host is garbage
	loaded map[string]dbus.UnitStatus // by name; nil when not read
	known  map[string]host.Unit       // units that were queried so far

	described map[string]described // by name; what services returned
	read      string               // when systemd had read the files of its units, as of described
}

// callTimeout limits the time of a call of systemd. Jobs are limited by the settings of their units.
const callTimeout = 30 * time.Second

func (s *systemd) forget() {
	s.mu.Lock()
	s.loaded, s.known = nil, nil
	s.mu.Unlock()
}

// connected calls a function with a new connection to systemd: over the bus or, for root and without a bus, to
// systemd's own socket.
func (s *systemd) connected(ctx context.Context, call func(*dbus.Conn) error) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return call(conn)
}

func connect(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return nil, diag.Unit.Hint(fmt.Errorf("talking to systemd: %w", err), "check that dbus runs; root does not need it")
	}
	return conn, nil
}

// ask returns the connection for queries. The caller must hold s.mu.
func (s *systemd) ask(ctx context.Context) (*dbus.Conn, error) {
	if s.conn != nil && s.conn.Connected() {
		return s.conn, nil
	}
	// systemd's own socket, which root alone may use, saves the way through the bus in both directions
	conn, err := dbus.NewSystemdConnectionContext(context.WithoutCancel(ctx))
	if err != nil {
		conn, err = connect(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, err
	}
	s.conn = conn
	runtime.AddCleanup(s, func(c *dbus.Conn) { c.Close() }, conn)
	return conn, nil
}

func (s *systemd) names(ctx context.Context) ([]string, error) {
	var names []string
	err := s.connected(ctx, func(c *dbus.Conn) error {
		files, err := c.ListUnitFilesContext(ctx)
		for _, f := range files {
			names = append(names, path.Base(f.Path))
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (s *systemd) unit(ctx context.Context, name, _ string) (host.Unit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := host.Unit{Name: host.UnitName(name)}
	if known, ok := s.known[u.Name]; ok {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := s.ask(ctx)
	if err != nil {
		return u, err
	}
	if err := s.load(ctx, conn); err != nil {
		return u, fmt.Errorf("listing units: %w", err)
	}
	if err := s.find(ctx, conn, &u); err != nil {
		return u, fmt.Errorf("querying unit %s: %w", u.Name, err)
	}
	s.known[u.Name] = u
	return u, nil
}

// load reads the list of loaded units unless it is cached.
func (s *systemd) load(ctx context.Context, conn *dbus.Conn) error {
	if s.loaded != nil {
		return nil
	}
	units, err := conn.ListUnitsContext(ctx)
	if err != nil {
		return err
	}
	s.loaded, s.known = make(map[string]dbus.UnitStatus, len(units)), map[string]host.Unit{}
	for _, u := range units {
		s.loaded[u.Name] = u
	}
	return nil
}

// find sets the properties of a unit.
func (s *systemd) find(ctx context.Context, conn *dbus.Conn, u *host.Unit) error {
	u.Masked, u.MaskedRuntime = masks(s.files, u.Name)
	file, onDisk, err := dbus.UnitFile{}, false, error(nil)
	if !strings.Contains(u.Name, "@") { // instances of templates hardly ever have unit files
		file, onDisk, err = unitFile(ctx, conn, u.Name)
	}
	switch {
	case err != nil:
		return err
	case !onDisk || file.Type == "alias": // the file of an alias does not have the state of its unit
		if err := s.describe(ctx, conn, u); err != nil {
			return err
		}
	default:
		u.Found, u.Boot, u.Active = true, file.Type, "inactive"
		if status, ok := s.loaded[u.Name]; ok {
			u.Active = status.ActiveState
		}
	}
	if u.Boot == "generated" && isInitScript(s.files, scriptName(u.Name)) {
		// Its links in the directories of the runlevels decide whether it starts.
		u.Boot = scriptAtBoot(s.files, scriptName(u.Name))
	}
	return nil
}

// unitFile returns the file of a unit, which systemd looks up on the disk.
func unitFile(ctx context.Context, conn *dbus.Conn, unit string) (dbus.UnitFile, bool, error) {
	pattern := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(unit)
	files, err := conn.ListUnitFilesByPatternsContext(ctx, nil, []string{pattern})
	if err != nil || len(files) == 0 {
		return dbus.UnitFile{}, false, err
	}
	return files[0], true, nil
}

// describe queries the properties of a unit, which makes systemd load it. Of a loaded unit only one is not in the list:
// a node has tens of guests, and all properties of a unit are a hundred.
func (s *systemd) describe(ctx context.Context, conn *dbus.Conn, u *host.Unit) error {
	if status, ok := s.loaded[u.Name]; ok {
		boot, err := conn.GetUnitPropertyContext(ctx, u.Name, "UnitFileState")
		if err != nil {
			return err
		}
		u.Found, u.Active = status.LoadState != "not-found", status.ActiveState
		u.Boot, _ = boot.Value.Value().(string)
		return nil
	}
	all, err := conn.GetUnitPropertiesContext(ctx, u.Name)
	if err != nil {
		return err
	}
	u.Found = all["LoadState"] != "not-found"
	u.Active, _ = all["ActiveState"].(string)
	u.Boot, _ = all["UnitFileState"].(string)
	return nil
}

// masks reports whether a unit is masked permanently, and whether it is masked until the next boot.
func masks(files host.Files, unit string) (always, untilBoot bool) {
	masked := func(dir string) bool {
		target, err := files.Readlink(dir + "/systemd/system/" + unit)
		return err == nil && target == "/dev/null"
	}
	return masked("/etc"), masked("/run")
}

func (s *systemd) setBoot(ctx context.Context, verb host.BootVerb, name string, untilBoot bool) error {
	unit := host.UnitName(name)
	switches := verb == host.Enable || verb == host.Disable
	if switches && s.isOnlyInitScript(ctx, unit) {
		return switchScript(ctx, s.commands, verb, scriptName(unit))
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.connected(limited, func(c *dbus.Conn) error {
		if err := change(limited, c, verb, []string{unit}, untilBoot); err != nil {
			return err
		}
		return s.reload(limited, c)
	})
	if err != nil || !switches || untilBoot || !isInitScript(s.files, scriptName(unit)) {
		return explainBus(err, string(verb), unit)
	}
	// As systemctl does, set the links of an init script with the same name, for tools that read them and for boots
	// without systemd.
	return switchScript(ctx, s.commands, verb, scriptName(unit))
}

// reload makes systemd reload its files. It clears stale first, so that files that change meanwhile set it again.
func (s *systemd) reload(ctx context.Context, c *dbus.Conn) error {
	s.stale.Store(false)
	err := c.ReloadContext(ctx)
	if err != nil {
		s.stale.Store(true)
		return fmt.Errorf("reloading the files of systemd: %w", err)
	}
	return nil
}

func change(ctx context.Context, c *dbus.Conn, verb host.BootVerb, unit []string, untilBoot bool) (err error) {
	switch verb {
	case host.Enable:
		_, _, err = c.EnableUnitFilesContext(ctx, unit, untilBoot, false)
	case host.Disable:
		_, err = c.DisableUnitFilesContext(ctx, unit, untilBoot)
	case host.Mask:
		_, err = c.MaskUnitFilesContext(ctx, unit, untilBoot, false)
	case host.Unmask:
		_, err = c.UnmaskUnitFilesContext(ctx, unit, untilBoot)
	}
	return err
}

// isOnlyInitScript reports whether a unit has no file of its own but an init script.
func (s *systemd) isOnlyInitScript(ctx context.Context, unit string) bool {
	if !isInitScript(s.files, scriptName(unit)) {
		return false
	}
	only := false
	err := s.connected(ctx, func(c *dbus.Conn) error {
		file, onDisk, err := unitFile(ctx, c, unit)
		only = !onDisk || file.Type == "generated"
		return err
	})
	return err == nil && only
}

// explainBus adds a hint to an error of systemd.
func explainBus(err error, what, unit string) error {
	var failed godbus.Error
	if err == nil || errors.Is(err, errNoUnit) {
		return err
	}
	text := fmt.Errorf("%s of %s: %w", what, unit, err)
	if !errors.As(err, &failed) {
		return text
	}
	switch name := strings.TrimPrefix(failed.Name, "org.freedesktop."); name {
	case "systemd1.NoSuchUnit", "DBus.Error.FileNotFound":
		return fmt.Errorf("%w: %s", errNoUnit, unit)
	case "systemd1.UnitMasked":
		return diag.Unit.Hint(text, "unmask it first: service.unmasked, or unmask: True")
	case "systemd1.LoadFailed", "systemd1.BadUnitSetting":
		return diag.Unit.Hint(text, "correct its unit file; `systemd-analyze verify %s` shows what is wrong", unit)
	case "systemd1.JobTypeNotApplicable":
		return diag.Unit.Hint(text, "this unit cannot do that; a unit without ExecReload= can only restart")
	case "systemd1.UnitExists":
		return diag.Unit.Hint(text,
			"a unit whose file is in /etc/systemd/system itself cannot be masked: disable it, or remove the file")
	case "DBus.Error.AccessDenied", "DBus.Error.InteractiveAuthorizationRequired":
		return diag.Rights.Hint(text, "run the agent as root")
	}
	return text
}
