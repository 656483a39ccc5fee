// Package host is the only interface between states and the machine.
//
// State functions read and change everything through a Host: files, processes, accounts, units, packages. A Host can
// therefore enforce the guarantees of a run. With a root, every path is below that root, including the targets of links
// inside it, and an operation that would act on the running system is refused with a Skipped error. Before each write,
// a recorder is called with the file that is replaced, so that it can keep the old content.
//
// This package implements files, commands and the recorder. For accounts, packages and units it defines the interfaces,
// which packages below it implement. Package machine opens all of them. Package program runs the programs that states
// use. The packages network, links, processes, passwd, outage and terminal do not need a host.
//
// Reads are cached for the run, and the cache is invalidated by a write, or by a command that may write anything.
package host

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/host/network"
)

// Host is one machine, or a directory tree with the files of one.
type Host struct {
	Files    Files
	Commands Commands
	Accounts Accounts
	Crontabs Crontabs
	Packages Packages
	Units    Units
	Kernel   Kernel
	Env      *Environment // of commands; nil for the agent's own
	Network  network.Network
	Kept     Kept // nil if nothing is kept between runs

	parsed        *ParseCache    // nil for no cache
	recorder      ChangeRecorder // nil for none
	machineErrors *walk.MachineErrors
	forget        func()                                // drops cached reads; nil if nothing is cached
	talk          func(Command) (*dialog.Dialog, error) // nil if no process can be started
}

// Kept keeps what takes long to compute between runs. It may lose everything at any time. It must be safe from other
// users, since root runs what is in it.
type Kept interface {
	// Read returns what was kept under a name; nil for nothing.
	Read(name string) []byte
	// Write keeps data under a name, in place of what was kept there.
	Write(name string, data []byte)
}

// Mark returns a mark for MachineErrorSince.
func (h *Host) Mark() int { return h.machineErrors.Mark() }

// MachineErrorSince returns the first error of the machine (EIO, EMFILE, ENFILE, ENOMEM) since a mark in reading a file
// or starting a command, or nil if there is none. Results that were computed since then may be wrong, even if the code
// that got the error did not return it. MachineErrorSince drops the cached ones, and the caller must not use the
// others.
func (h *Host) MachineErrorSince(mark int) error {
	err := h.machineErrors.Since(mark)
	if err == nil {
		return nil
	}
	if h.forget != nil {
		h.forget()
	}
	return explain(err)
}

type attributedKey struct{}

// Attributing returns a context for one step. Errors of the machine in files that the step uses are errors of that step
// alone, and not of steps that run at the same time: see Attributed and MachineErrorOf.
func Attributing(ctx context.Context) context.Context {
	return context.WithValue(ctx, attributedKey{}, &step{errors: &walk.MachineErrors{}})
}

// step is one step of a run.
type step struct {
	errors *walk.MachineErrors // that the step met

	mu      sync.Mutex
	sources []source // files of the host from which the step takes content, and that have not been looked at
	users   bool     // an unprivileged user can change one of them
}

// source is a path in a root.
type source struct {
	root *walk.Root
	path string
}

// takes notes a source.
func (s *step) takes(root *walk.Root, p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, source{root, p})
}

// Attributed returns a host like h for the step of a context of Attributing. A host whose files are not those of a
// machine or a root is returned unchanged.
func (h *Host) Attributed(ctx context.Context) *Host {
	t, ok := h.Files.(*tree)
	of, attributed := ctx.Value(attributedKey{}).(*step)
	if !ok || !attributed || t.machineErrors == nil {
		return h
	}
	other, own := *h, *t
	own.machineErrors, own.step = of.errors, of
	other.Files = &own
	return &other
}

// MachineErrorOf is like MachineErrorSince for the step of a context of Attributing. Errors of commands, and of files
// that accounts, packages and units are read from, count for each step that ran at the time.
func (h *Host) MachineErrorOf(ctx context.Context, mark int) error {
	var err error
	if of, attributed := ctx.Value(attributedKey{}).(*step); attributed {
		err = of.errors.Since(0)
	}
	if err == nil {
		return h.MachineErrorSince(mark)
	}
	if h.forget != nil {
		h.forget()
	}
	return explain(err)
}

// WithFiles returns a host like h with other Files.
func (h *Host) WithFiles(files Files) *Host {
	other := *h
	other.Files, other.parsed, other.Network = files, &ParseCache{}, network.Of(files)
	return &other
}

// Following returns a host like h that follows every link, including those that other users control, for states with
// `follow_unsafe: true`. A host whose files are not those of a machine or a root is returned unchanged.
func (h *Host) Following() *Host {
	t, ok := h.Files.(*tree)
	if !ok {
		return h
	}
	other := *h
	other.Files, other.Accounts = t.following(), followingAccounts{h.Accounts}
	other.Commands, other.Network = followingCommands{h.Commands}, network.Of(other.Files)
	return &other
}

// Unattributed returns a host like h for reads that belong to no step, such as those of the journal: their errors are
// not errors of the step that runs at the time, see MachineErrorSince. A host whose files are not those of a machine or
// a root is returned unchanged.
func (h *Host) Unattributed() *Host {
	t, ok := h.Files.(*tree)
	if !ok {
		return h
	}
	other, apart := *h, *t
	apart.machineErrors = nil
	other.Files = &apart
	return &other
}

// Ending returns a host like h on which the removal of a tree stops when ctx is done, even if it is incomplete, since
// the removal of a large tree can take minutes. A host whose files are not those of a machine or a root is returned
// unchanged.
func (h *Host) Ending(ctx context.Context) *Host {
	t, ok := h.Files.(*tree)
	if !ok || ctx.Done() == nil {
		return h
	}
	other, ending := *h, *t
	ending.ending = ctx
	other.Files = &ending
	return &other
}

// WithLinks returns a host like h for a dry run of a deploy, on which links have the targets that the deploy will give
// them. links maps the path of a link to its future target. A host whose files are not those of a machine or a root is
// returned unchanged. Commands use the present links.
func (h *Host) WithLinks(links map[string]string) *Host {
	t, ok := h.Files.(*tree)
	if !ok || len(links) == 0 {
		return h
	}
	other, planned := *h, *t
	planned.links = links
	other.Files, other.parsed, other.Network = &planned, &ParseCache{}, network.Of(&planned)
	return &other
}

// Machine returns the files of this machine, regardless of the host's root. Errors in reading them are recorded for
// MachineErrorSince of h.
func (h *Host) Machine() (Files, error) {
	files, err := openTree("", false, Options{}, func(string) {})
	if err != nil {
		return nil, err
	}
	files.machineErrors = h.machineErrors
	return files, nil
}

// Options configure a Host.
type Options struct {
	// Root is the directory that stands for "/"; "" is the machine itself.
	Root string
	// Chroot is true if Root is a system tree to be entered: commands run inside it.
	Chroot bool
	// Commands runs the commands of the host; nil for processes of this machine. With Commands set, nothing acts on the
	// running system, so a plain root refuses nothing.
	Commands Commands
	// Recorder is called before anything is replaced; nil for none.
	Recorder ChangeRecorder
	// Temporary is called with a directory of this machine before the first temporary file is created in it; nil for
	// none. A process that is killed does not remove its temporary files.
	Temporary func(dir string)
	// Own is the unit that runs the agent, on which states act only after the run; nil if states act on it at once.
	Own *OwnUnit
	// Failed is called with the output of each command that ends with a code other than 0; nil for none. Calls
	// may come at the same time.
	Failed func(Output)
	// LockWait limits the wait for other processes that change packages; 0 means five minutes.
	LockWait time.Duration
}

// Relocated reports whether the root is another directory than that of the machine.
func (o Options) Relocated() bool { return o.Root != "" && o.Root != "/" }

// Offline reports whether the system in the root is not running: the running kernel and init system are those of the
// machine that contains the root.
func (o Options) Offline() bool { return o.Relocated() && o.Commands == nil }

// Refuses reports whether commands are refused: the root is not a system to enter.
func (o Options) Refuses() bool { return o.Offline() && !o.Chroot }

// Skipped is the error for an operation that was not done because it would have acted on the running system instead of
// the root of the run.
type Skipped struct{ What string }

func (s *Skipped) Error() string {
	return fmt.Sprintf("%s would act on the running system and not below the root", s.What)
}

// HostOnly implements [diag.IsHostOnly].
func (s *Skipped) HostOnly() bool { return true }

// Hint suggests a way to perform the operation.
func (s *Skipped) Hint() string {
	return diag.Usage.Coded("run on the host itself, or with --chroot if the root is a whole system")
}

// Talk starts a process for a dialog. It looks up the program in the directories of the system's programs, inside the
// root if commands run there. If no command may run on this host, the error is that of Commands.Allowed.
func (h *Host) Talk(c Command) (*dialog.Dialog, error) {
	if h.talk == nil {
		return nil, cmp.Or(h.Commands.Allowed(c.Argv[0]), error(&Skipped{What: c.Argv[0]}))
	}
	return h.talk(c)
}

// RecordCommand records that a program that may change anything runs. A rollback cannot undo its changes and only
// reports its name.
func (h *Host) RecordCommand(ctx context.Context, name string) error {
	if h.recorder == nil || !applying(ctx) {
		return nil
	}
	if err := h.recorder.Replacing(Subject{KindCommand, name}); err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	return nil
}

// Acted drops all cached reads if ctx is one of Applying. Callers call it after a program that this Host did not start,
// which may have changed the machine.
func (h *Host) Acted(ctx context.Context) {
	if applying(ctx) && h.forget != nil {
		h.forget()
	}
}
