package units

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// Service is a unit with properties of the program that it runs. Only systemd has them; with other init systems they
// are zero.
type Service struct {
	host.Unit
	Known    bool          // the fields below were filled in
	Sub      string        // running, dead, auto-restart, exited ...
	Result   string        // result of the last run: success, exit-code, start-limit-hit ...
	Status   int           // exit status of the last run of its main program
	Quiet    bool          // its program counts as started without a notification (Type=simple, exec, idle)
	Job      bool          // a program that runs to its end and leaves nothing active
	MainPID  int           // 0 if unknown
	Began    time.Duration // on the monotonic clock, when its main program started; 0 for never since boot
	BeganAt  time.Time     // the same by the wall clock
	Ended    time.Duration // on the monotonic clock, when its main program ended last; 0 for never, or while it runs
	Left     time.Duration // on the monotonic clock, when it left the active state last; 0 for never
	Restarts int           // by systemd, because the program ended
	Settings []string      // values that may name files: commands, environment files, watched paths
	Triggers []string      // units that this one starts
	Awaited  bool          // another unit, such as a timer, a socket or a path unit, starts it
	Files    []string      // from which the unit was loaded
	User     string        // as whom its programs run; "" for root
	Cgroup   string        // of its processes, such as /system.slice/app.service; "" for none
}

// Describe returns the state of a unit and of its main program.
func Describe(ctx context.Context, h *host.Host, name string) (Service, error) {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return Service{}, &host.Skipped{What: "querying unit " + name}
	}
	s, ok := u.init.(*systemd)
	if !ok {
		unit, err := u.init.unit(ctx, name, "")
		return Service{Unit: unit}, err
	}
	return s.service(ctx, host.UnitName(name))
}

// DescribeAll returns the states of units that Loaded has listed, in their order, without Boot. systemd is asked for
// several at once: an answer takes longer to travel than to make.
func DescribeAll(ctx context.Context, h *host.Host, names []string) ([]Service, error) {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return nil, &host.Skipped{What: "querying units"}
	}
	s, ok := u.init.(*systemd)
	if !ok {
		return nil, nil // Loaded lists none
	}
	return s.services(ctx, names)
}

// Loaded lists the services and path units that systemd has loaded; it is empty for other init systems.
func Loaded(ctx context.Context, h *host.Host) ([]string, error) {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return nil, &host.Skipped{What: "listing units"}
	}
	s, ok := u.init.(*systemd)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := conn.ListUnitsContext(ctx)
	var names []string
	for _, u := range all {
		if kind := path.Ext(u.Name); u.LoadState == "loaded" && (kind == ".service" || kind == ".path") {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Forgive resets the failed state and the start counter of a unit in systemd, so that the start limit that a broken
// program used up does not affect a good one.
func Forgive(ctx context.Context, h *host.Host, name string) {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return
	}
	if s, ok := u.init.(*systemd); ok {
		// a unit that is not loaded has no failed state to reset
		_ = s.connected(ctx, func(c *dbus.Conn) error { return c.ResetFailedUnitContext(ctx, host.UnitName(name)) })
	}
}

// questions is the number of units for which systemd is asked at once.
const questions = 16

// described is what systemd said about a unit when its state had changed last at a certain time.
type described struct {
	service Service
	changed any
}

// services describes units. A unit whose state has not changed since it was described is not described again: all
// properties take milliseconds, two of them a tenth of that. Whether a unit starts at boot is not among them.
func (s *systemd) services(ctx context.Context, names []string) ([]Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	s.forgetDescribed(conn)
	all := make([]described, len(names))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	for i, name := range names {
		before, known := s.described[name]
		group.Go(func() (err error) {
			if all[i] = before; !known || !unchanged(within, conn, before) {
				all[i], err = properties(within, conn, name)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	services := make([]Service, len(names))
	for i, name := range names {
		s.described[name] = all[i]
		services[i] = all[i].service
		services[i].Masked, services[i].MaskedRuntime = masks(s.files, name)
	}
	return services, nil
}

// forgetDescribed drops the descriptions if systemd has read its files since they were made. A systemd that does not
// tell when it did so is asked each time.
func (s *systemd) forgetDescribed(conn *dbus.Conn) {
	read, err := conn.GetManagerProperty("UnitsLoadTimestampMonotonic")
	if err != nil || read != s.read || s.described == nil {
		s.described = map[string]described{}
	}
	s.read = read
}

func (s *systemd) service(ctx context.Context, name string) (Service, error) {
	all, err := s.services(ctx, []string{name})
	if err != nil {
		return Service{}, err
	}
	d := all[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.ask(ctx)
	if err != nil {
		return Service{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	boot, err := conn.GetUnitPropertyContext(ctx, name, "UnitFileState")
	if err != nil {
		return Service{}, fmt.Errorf("querying unit %s: %w", name, err)
	}
	d.Boot, _ = boot.Value.Value().(string)
	return d, nil
}

// unchanged reports whether a unit has not changed its state since it was described. A program may name another main
// process without such a change.
func unchanged(ctx context.Context, conn *dbus.Conn, d described) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	changed, err := conn.GetUnitPropertyContext(ctx, d.service.Name, changeOfState)
	if err != nil || d.changed == nil || changed.Value.Value() != d.changed {
		return false
	}
	if path.Ext(d.service.Name) != ".service" {
		return true
	}
	main, err := conn.GetUnitTypePropertyContext(ctx, d.service.Name, "Service", "MainPID")
	if err != nil {
		return false
	}
	pid, _ := main.Value.Value().(uint32)
	return int(pid) == d.service.MainPID
}

// changeOfState is the property with the time at which a unit last changed its state.
const changeOfState = "StateChangeTimestampMonotonic"

// ofUnit has the properties of all kinds of units that Service is made of. To ask for each of them costs systemd less
// than to ask for all: UnitFileState and UnitFilePreset, which all would include, make it read directories for
// milliseconds.
var ofUnit = []string{"LoadState", "ActiveState", "SubState", "FragmentPath", "DropInPaths", "Triggers", "TriggeredBy",
	"InactiveExitTimestamp", "InactiveExitTimestampMonotonic", "ActiveExitTimestampMonotonic", changeOfState}

// properties asks systemd for everything about a unit but whether it starts at boot, which makes systemd load it.
func properties(ctx context.Context, conn *dbus.Conn, name string) (described, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all := map[string]any{}
	var err error
	if kind := interfaceOf(name); kind != "" {
		all, err = conn.GetUnitTypePropertiesContext(ctx, name, kind)
	}
	for _, property := range ofUnit {
		if err != nil {
			return described{}, fmt.Errorf("querying unit %s: %w", name, err)
		}
		var one *dbus.Property
		if one, err = conn.GetUnitPropertyContext(ctx, name, property); err == nil {
			all[property] = one.Value.Value()
		}
	}
	d := Service{Unit: host.Unit{Name: name}, Known: true}
	d.Found = all["LoadState"] != "not-found"
	d.Active, _ = all["ActiveState"].(string)
	d.read(all)
	return described{service: d, changed: all[changeOfState]}, nil
}

// interfaceOf returns the D-Bus interface of a kind of units that run programs or lead to units that do; "" for any
// other kind.
func interfaceOf(unit string) string {
	switch kind := path.Ext(unit); kind {
	case ".service", ".socket", ".path", ".timer", ".mount", ".swap":
		return strings.ToUpper(kind[1:2]) + kind[2:]
	}
	return ""
}

// read sets the fields from the properties that systemd returned.
func (d *Service) read(all map[string]any) {
	d.Sub, _ = all["SubState"].(string)
	d.Result, _ = all["Result"].(string)
	remains, _ := all["RemainAfterExit"].(bool)
	d.Job = all["Type"] == "oneshot" && !remains
	d.Quiet = slices.Contains([]any{"simple", "exec", "idle"}, all["Type"])
	pid, _ := all["MainPID"].(uint32)
	d.MainPID = int(pid)
	status, _ := all["ExecMainStatus"].(int32)
	d.Status = int(status)
	restarts, _ := all["NRestarts"].(uint32)
	d.Restarts = int(restarts)
	monotonic, _ := all["ExecMainStartTimestampMonotonic"].(uint64)
	wall, _ := all["ExecMainStartTimestamp"].(uint64)
	if monotonic == 0 { // no main program, or none that systemd knows
		monotonic, _ = all["InactiveExitTimestampMonotonic"].(uint64)
		wall, _ = all["InactiveExitTimestamp"].(uint64)
	}
	d.Began = clock(monotonic)
	if wall != 0 {
		d.BeganAt = time.UnixMicro(int64(wall)).UTC()
	}
	d.Ended, d.Left = clock(all["ExecMainExitTimestampMonotonic"]), clock(all["ActiveExitTimestampMonotonic"])
	d.Triggers, _ = all["Triggers"].([]string)
	triggered, _ := all["TriggeredBy"].([]string)
	d.Awaited = len(triggered) > 0
	d.User, _ = all["User"].(string)
	d.Cgroup, _ = all["ControlGroup"].(string)
	d.Files, _ = all["DropInPaths"].([]string)
	if file, _ := all["FragmentPath"].(string); file != "" {
		d.Files = append(d.Files, file)
	}
	for name, v := range all {
		if strings.HasPrefix(name, "Exec") ||
			slices.Contains([]string{"EnvironmentFiles", "Environment", "WorkingDirectory", "RootDirectory", "Paths"}, name) {
			d.Settings = texts(d.Settings, v)
		}
	}
}

// clock converts a property of systemd that is a time on the monotonic clock.
func clock(property any) time.Duration {
	at, _ := property.(uint64)
	return time.Duration(at) * time.Microsecond
}

// EndedItself reports whether the unit is down because its main program ended, and not because it was stopped. When
// systemd stops a unit, the unit leaves the active state before its program ends; otherwise it does so afterwards.
func (d Service) EndedItself() bool {
	return d.Known && d.Active == "inactive" && d.Ended > 0 && d.Ended <= d.Left
}

// State returns the state of the unit in systemd's terms.
func (d Service) State() string {
	if d.Sub == "" {
		return d.Active
	}
	return d.Active + " (" + d.Sub + ")"
}

// statusUser is the exit status of a process for which systemd could not change to the unit's user, see
// systemd.exec(5).
const statusUser = 217

// Ending describes how the main program ended.
func (d Service) Ending() string {
	if d.Status == statusUser {
		return fmt.Sprintf(
			"was not started, with status 217/USER: its user %s does not exist or cannot be used (getent passwd %s)", d.User,
			d.User)
	}
	if d.Result != "" && d.Result != "success" {
		return fmt.Sprintf("ended with status %d (%s)", d.Status, d.Result)
	}
	return fmt.Sprintf("ended with status %d", d.Status)
}

// texts appends all strings in a value of D-Bus.
func texts(list []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(list, v)
	case []string:
		return append(list, v...)
	case []any:
		for _, item := range v {
			list = texts(list, item)
		}
	case [][]any:
		for _, item := range v {
			list = texts(list, item)
		}
	}
	return list
}

// Own returns the unit in which this process runs, or "" if there is none.
func Own() string {
	for part := range strings.SplitSeq(processes.CgroupOf("/proc/self/"), "/") {
		if strings.HasSuffix(part, ".service") {
			return part
		}
	}
	return ""
}

// Monotonic returns the time on the monotonic clock, which systemd uses for the times of units.
func Monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
