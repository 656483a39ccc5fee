// Package state converges a host: it compiles SLS files and applies their states.
//
// An Engine works in two steps. Compile determines the steps and changes nothing; its errors have positions in files.
// Apply carries the steps out. The native engine of this project is the default. salt-call, ansible-playbook and any
// other command can be used instead.
package state

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Request describes one converge: the host, the trees, and the options.
type Request struct {
	Host   *host.Host
	Grains *value.Map

	Service string // directory of the service's release, by its path on the host
	Base    string // directory of base's release; empty without one

	StateRoots  []string // directories of SLS files; the first that has a file wins
	PillarRoots []string
	TopRoots    bool // use the top files of all roots, the last root's first; only the native engine supports it

	Templates []Template // configuration files of the releases

	Options  *value.Map       // of a minion, such as ext_pillar; only the native engine uses them; may be nil
	Override *value.Map       // pillar that wins over all files; may be nil
	Redactor *redact.Redactor // receives the decrypted values; nil for none
	Vars     *value.Map       // additional variables of templates; only the native engine uses them

	WorkDir string // directory on this machine for files that an engine writes

	Remote  session.Remote   // opens sources that are in no tree; nil for none
	Buckets external.Buckets // see session.Settings
	Log     func(level, message string)
	Version string // version of this program

	Test            bool // change nothing
	Failhard        bool
	Grace           time.Duration // see exec.Runner
	StrictArguments bool
	StateOutput     string
	StateVerbose    bool
}

// Engine compiles a request into a program.
type Engine interface {
	// Compile changes nothing. Problems in users' files are a diag.List.
	Compile(ctx context.Context, r Request) (Program, error)
}

// Program is a compiled converge that has not run yet.
type Program interface {
	// Apply runs the program, or with Request.Test predicts its changes. If states failed, it returns a *Failure in
	// addition to the outcome.
	Apply(ctx context.Context, o exec.Observer) (Outcome, error)
}

// Outcome holds the results of a converge.
type Outcome struct {
	Results []*exec.Result
	Output  string // the output of an engine that is a program, unchanged
}

// Excused returns a *Failure for the states that failed and may fail (may_fail), or nil. Apply returns none for them.
func (o Outcome) Excused() error {
	return failure(o.Results, func(r *exec.Result) bool { return r.Fails() && r.MayFail() })
}

// Failure is the error of a converge in which states failed. It holds the first failed result.
type Failure struct {
	Count int
	First *exec.Result
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("%s of %s failed: %s", f.First.Step.Function(), f.First.ID(),
		f.First.Explanation())
	if f.Count > 1 {
		text = diag.Count(f.Count, "state") + " failed, the first: " + text
	}
	return text
}

// Outage reports whether the first failed state could not reach a server.
func (f *Failure) Outage() bool { return outage.Passing(f.First.Cause()) }

// Refused reports whether the first failed state refused a file that an unprivileged user controls, such as a link of
// theirs at the path of a state. What the release declares and no user could have caused does not count.
func (f *Failure) Refused() bool { return host.ByUser(f.First.Cause()) }

// Obstructed reports whether the first failed state failed because of something that an unprivileged user may have put
// in its way, such as a directory in the place of a file.
func (f *Failure) Obstructed() bool { return f.First.Obstruction() != nil }

// Immutable reports whether the first failed state could not change a file with the immutable attribute.
func (f *Failure) Immutable() bool {
	var immutable *walk.Immutable
	return errors.As(f.First.Cause(), &immutable)
}

// Is reports whether the first failed state failed because of a system call with this error.
func (f *Failure) Is(target error) bool {
	errno, ok := target.(syscall.Errno)
	return ok && f.First.FailedBy(errno)
}

// As finds a *packages.Busy, a *packages.Unfinished, a *packages.Killed or a failure of python3 itself in the cause of
// the first failed state. It finds no other error, since those may hold secrets.
func (f *Failure) As(target any) bool {
	switch target.(type) {
	case **packages.Busy, **packages.Unfinished, **packages.Killed, *diag.HostFault, **python.Unstarted,
		**python.Killed, **python.Unreached:
		cause := f.First.Cause()
		return cause != nil && errors.As(cause, target)
	}
	return false
}

// Hint returns the hint of the first failed state.
func (f *Failure) Hint() string { return f.First.Hint }

// failed reports whether the whole run failed because of a state.
func failed(r *exec.Result) bool { return r.Fails() && !r.MayFail() }

// failure returns a *Failure if there are results that failed, or nil.
func failure(results []*exec.Result, failed func(*exec.Result) bool) error {
	var f Failure
	for _, r := range results {
		if failed(r) {
			f.Count++
			if f.First == nil {
				f.First = r
			}
		}
	}
	if f.Count == 0 {
		return nil
	}
	return &f
}

// ByName returns the engine with a name. command is the program and arguments of an engine that is not native.
func ByName(name string, command []string) (Engine, error) {
	switch name {
	case "native", "":
		return Native{}, nil
	case "salt-call":
		return SaltCall{Program: first(command, "salt-call")}, nil
	case "ansible":
		return Ansible{Program: first(command, "ansible-playbook")}, nil
	case "command":
		if len(command) == 0 {
			return nil, diag.Engine.Hint(fmt.Errorf("the engine `command` has no command"), "set engine_command in agent.yaml")
		}
		return Command{Argv: command}, nil
	}
	return nil, diag.Engine.Hint(fmt.Errorf("there is no engine %q", name),
		"the engines are native, salt-call, ansible and command")
}

func first(list []string, fallback string) string {
	if len(list) > 0 {
		return list[0]
	}
	return fallback
}
