package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ChangeRecorder keeps the files and other subjects that a run replaces.
type ChangeRecorder interface {
	// Replacing is called before the first byte of the subject changes. An error stops the change.
	Replacing(s Subject) error
	// Kept returns when everything that was passed to Replacing is on the disk, so that a power failure cannot lose
	// it. It is called right before a change becomes visible, and an error stops the change. Between the two calls
	// the change writes its own data.
	Kept() error
}

// Subject is one thing of the host that is about to change.
type Subject struct {
	Kind Kind
	Name string // path, account, unit or package name
}

// String returns the kind and the name in one line.
func (s Subject) String() string { return string(s.Kind) + " " + diag.OneLine(s.Name) }

// Kind is the kind of a subject, in the words of reports.
type Kind string

// The kinds of subjects. A subject of any other kind cannot be restored from its name.
const (
	KindFile         Kind = "file" // a path itself: file, directory or link
	KindTree         Kind = "tree" // a path with all that is below it
	KindUser         Kind = "user"
	KindGroup        Kind = "group"
	KindUnit         Kind = "unit"         // whether it runs
	KindBoot         Kind = "unit at boot" // whether it is enabled or masked
	KindPackage      Kind = "package"
	KindHostname     Kind = "hostname"
	KindSysctl       Kind = "sysctl"
	KindMount        Kind = "mount"
	KindAlternative  Kind = "alternative"
	KindKernelModule Kind = "kernel module"
	KindCommand      Kind = "command" // a program that may have changed anything; it cannot be undone
)

// Record passes subjects that are about to be replaced to the recorder r, and waits until r has kept them. It does
// nothing if r is nil.
func Record(r ChangeRecorder, subjects ...Subject) error {
	if r == nil {
		return nil
	}
	recorded := false
	for _, s := range subjects {
		if s == (Subject{}) {
			continue
		}
		if err := r.Replacing(s); err != nil {
			return fmt.Errorf("recording %s: %w", s, err)
		}
		recorded = true
	}
	if !recorded {
		return nil
	}
	return awaitKept(r)
}

func awaitKept(r ChangeRecorder) error {
	if r == nil {
		return nil
	}
	if err := r.Kept(); err != nil {
		return fmt.Errorf("recording what is to be replaced: %w", err)
	}
	return nil
}

// Announce records paths that are about to change, and the directories that will be created above them. The first
// change then waits until all of them are kept, and the others need not wait.
func (h *Host) Announce(paths ...string) error {
	t, ok := h.Files.(*tree)
	if !ok {
		return nil
	}
	for _, p := range paths {
		if !t.records(p) {
			continue
		}
		names := h.Missing(p)
		if names == nil {
			names = []string{t.real(p)}
		}
		for _, name := range names {
			if err := t.replacing(KindFile, p, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Missing returns the missing directories above a path, followed by the path, all without links. It returns nil if the
// path exists, or if that cannot be determined.
func (h *Host) Missing(p string) []string {
	t, ok := h.Files.(*tree)
	if !ok || !path.IsAbs(p) {
		return nil
	}
	if _, err := t.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if above := h.Missing(path.Dir(p)); len(above) > 0 {
		return append(above, path.Join(above[len(above)-1], path.Base(p)))
	}
	return []string{t.real(p)}
}

type applyingKey struct{}

// Applying returns a context for calls that apply the changes of a state. Other calls, such as a guard or a command in
// a template, should only read.
func Applying(ctx context.Context) context.Context {
	return context.WithValue(ctx, applyingKey{}, true)
}

func applying(ctx context.Context) bool { return ctx.Value(applyingKey{}) != nil }

type decidingKey struct{}

// Deciding returns a context for a check that only decides whether there is something to do, since Apply follows. What
// it finds need not list the changes.
func Deciding(ctx context.Context) context.Context {
	return context.WithValue(ctx, decidingKey{}, true)
}

// Decides reports whether a context comes from [Deciding].
func Decides(ctx context.Context) bool { return ctx.Value(decidingKey{}) != nil }

// Acts reports whether a call belongs to a state that may change the host: its context comes from [Applying] or from
// [Deciding]. The other calls are those of dry runs, of templates and of guards.
func Acts(ctx context.Context) bool { return applying(ctx) || Decides(ctx) }

// namedCommands runs the commands of a host. The recorder, if there is one, receives the name of each command that may
// change something, unless the caller has recorded its subjects.
type namedCommands struct {
	Commands
	recorder ChangeRecorder
	left     *leftovers
}

func (r *namedCommands) Run(ctx context.Context, c Command) (Output, error) {
	if c.Quiet || c.Named || !applying(ctx) || r.Allowed(c.Argv[0]) != nil {
		return r.Commands.Run(ctx, c)
	}
	if r.recorder != nil {
		// Only the name of the program is recorded, since the arguments may have secrets. The command does not wait for
		// Kept, since it cannot be undone.
		s := Subject{KindCommand, path.Base(c.Argv[0])}
		if err := r.recorder.Replacing(s); err != nil {
			return Output{}, fmt.Errorf("recording %s: %w", s, err)
		}
	}
	defer r.left.commandRan()
	return r.Commands.Run(ctx, c)
}

// ownTemp reports whether a path is a temporary file of this program, which is removed at the end of its step, or lies
// in a temporary directory.
func ownTemp(p string) bool {
	return strings.HasPrefix(path.Base(p), tempPrefix) || strings.Contains(p, "/"+tempPrefix)
}
