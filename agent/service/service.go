// Package service makes the units of a release run it, and checks that they do: it finds the units, restarts them when
// the release's links have moved, and determines from which release the main process of each runs.
//
// A process that was started through a link is not affected when the link moves. So after `current` has moved, and
// after it has moved back, every unit that starts through the links is restarted or reloaded once. What a process runs
// is then read from the kernel: its program, its working directory and its arguments are in the directory of one
// release or of another. An interpreter with a script that the links lead to gives no such evidence; then its start
// time decides.
package service

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// System is the init system and the processes of a host.
type System interface {
	// Allowed returns an error if the units are not those of this host, as below another root.
	Allowed() error
	// Loaded lists the services and path units that the init system has in memory.
	Loaded(ctx context.Context) ([]string, error)
	// Service describes a unit. For a unit that does not exist, Found is false and the error nil.
	Service(ctx context.Context, name string) (units.Service, error)
	// Services describes units of Loaded, in their order; it leaves out whether they start at boot.
	Services(ctx context.Context, names []string) ([]units.Service, error)
	// Process describes a process; fields that the caller may not read are empty.
	Process(pid int) processes.Process
	// Sockets returns the TCP sockets of this host for which wanted returns true.
	Sockets(wanted func(processes.Socket) bool) []processes.Socket
	// Forgive resets the failed state of a unit and the count of its recent starts.
	Forgive(ctx context.Context, name string)
	// Act restarts, reloads or stops a unit and waits until that is done.
	Act(ctx context.Context, verb host.UnitVerb, name string) error
	// Journal returns what a unit logged since a time, oldest line first and not redacted; nil if there is no
	// journal.
	Journal(ctx context.Context, name string, since time.Time) []string
	// Clock returns the time of the monotonic clock of units.Service.Began.
	Clock() time.Duration
	// Own returns the unit that this process runs in; "" if there is none.
	Own() string
}

// Of returns the System of a host.
func Of(h *host.Host) System { return system{h} }

type system struct{ host *host.Host }

func (s system) Allowed() error { return s.host.Units.Allowed("restarting units") }

func (s system) Loaded(ctx context.Context) ([]string, error) {
	return units.Loaded(ctx, s.host)
}

func (s system) Service(ctx context.Context, name string) (units.Service, error) {
	return units.Describe(ctx, s.host, name)
}

func (s system) Services(ctx context.Context, names []string) ([]units.Service, error) {
	return units.DescribeAll(ctx, s.host, names)
}

func (s system) Process(pid int) processes.Process { return processes.Of(pid) }

func (s system) Sockets(wanted func(processes.Socket) bool) []processes.Socket {
	return processes.Sockets(wanted)
}

func (s system) Forgive(ctx context.Context, name string) { units.Forgive(ctx, s.host, name) }

func (s system) Act(ctx context.Context, verb host.UnitVerb, name string) error {
	if verb != host.Stop {
		s.Forgive(ctx, name)
	}
	return s.host.Units.Act(ctx, verb, name, true)
}

func (s system) Journal(ctx context.Context, name string, since time.Time) []string {
	return units.Journal(ctx, s.host, name, since)
}

func (s system) Clock() time.Duration { return units.Monotonic() }

func (s system) Own() string { return units.Own() }

// Project is a project of the host, with the release that its units are to run.
type Project struct {
	Name    string
	Version string   // of the release
	Dir     string   // the project's directory, as this machine names it
	Release string   // the name of the release's directory
	Links   []string // paths that lead to the release, as units name them
	Units   []string // units that the release names; nil means those that start through the links
	Reload  []string // units to reload instead of restarting them
	Moved   bool     // the links lead to another release than before
	// MovedAt is the time at which this run moved the links, on the monotonic clock; 0 if it did not.
	MovedAt time.Duration
	// Linked is the time at which the links were last moved, by the wall clock.
	Linked time.Time
	// LinkedClock is the same on the monotonic clock, 0 for an earlier boot; nil if unknown.
	LinkedClock *time.Duration
	// Current is the name of the directory that current leads to; "" if unknown. An interrupted run may have left it
	// on another release than the deployed one.
	Current string
}

func (p Project) String() string { return strings.TrimSpace(p.Name + " " + p.Version) }

// startedSince reports whether the main program of a unit was started after the links were moved last.
func (p Project) startedSince(d units.Service) bool {
	if p.LinkedClock != nil && d.Known && d.Began > 0 {
		return d.Began > *p.LinkedClock
	}
	return d.BeganAt.After(p.Linked)
}

// Member is a unit of a project.
type Member struct {
	Unit    string
	Project Project
	Named   bool // the release names the unit
	Reload  bool
}

// What was done about a unit.
const (
	Restarted = "restarted"
	Reloaded  = "reloaded"
	Started   = "started"
	Kept      = "kept" // it runs the release already
	Left      = "left" // it stays unchanged
	Stopped   = "stopped"
)

// Result is the result of an action on a unit.
type Result struct {
	Unit     string        `json:"unit"`
	Release  string        `json:"release"` // whose unit it is, such as "myapp 2.0"
	Action   string        `json:"action"`
	Why      string        `json:"why,omitempty"` // of a unit that was left or kept
	Error    string        `json:"error,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Absent is a unit that the release names and the host does not have.
	Absent  bool   `json:"absent,omitempty"`
	Project string `json:"-"` // whose unit it is
}

// Serves reports whether the unit has to run the release now.
func (r Result) Serves() bool { return r.Action != Left && r.Action != Stopped }

// Failed is the error with the units that could not be restarted.
type Failed struct {
	Results []Result
	Err     error
}

func (f *Failed) Error() string {
	return "putting the release into service: " + f.Err.Error()
}

func (f *Failed) Unwrap() error { return f.Err }

// Project returns the project of the first unit that failed.
func (f *Failed) Project() string {
	for _, r := range f.Results {
		if r.Error != "" {
			return r.Project
		}
	}
	return ""
}

// Units returns the units that failed.
func (f *Failed) Units() []string {
	var units []string
	for _, r := range f.Results {
		if r.Error != "" {
			units = append(units, r.Unit)
		}
	}
	return units
}

// Properties parses the output of `systemctl show` for one unit, and returns the values by property.
func Properties(answer string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		said[name] = value
	}
	return said
}

// FullName returns a unit's name with its type suffix, and without a directory.
func FullName(name string) string {
	name = path.Base(name)
	switch path.Ext(name) {
	case ".service", ".socket", ".path", ".timer", ".target", ".mount":
		return name
	}
	return name + ".service"
}

// describeAll returns the descriptions of units of Loaded, in their order.
func describeAll(ctx context.Context, s System, names []string) ([]units.Service, error) {
	all, err := s.Services(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("looking at the host's units: %w", err)
	}
	return all, nil
}

// describe returns the description of a unit.
func describe(ctx context.Context, s System, name string) (units.Service, error) {
	d, err := s.Service(ctx, name)
	if err != nil {
		return d, fmt.Errorf("looking at %s: %w", name, err)
	}
	return d, nil
}
