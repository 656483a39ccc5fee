// Package hook runs the programs of a release for the stages before and after it is made current.
//
// A hook is not trusted to clean up: it gets a clean environment, a directory, a time limit and its own process tree,
// so that every process that it started can be killed with it. Its output is kept, up to a limit.
package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options are the options of hooks and other programs.
type Options struct {
	Env     []string      // the whole environment, as NAME=value
	Root    string        // system tree in which the hooks run; "" for the running system
	Dir     string        // working directory, as seen in the root
	Timeout time.Duration // of each hook
	Grace   time.Duration // between SIGTERM and SIGKILL; 10 s by default
	Output  int           // bytes of output kept of each hook; 64 KiB by default
	Args    []string      // arguments; hooks get none
	Stdin   io.Reader     // standard input; nil for none
	Tee     io.Writer     // receives the output as it comes; nil for none
	// Files are passed to the program as descriptors 3 and up. A program that holds a file of this process must not
	// outlive it: with Files, the kernel kills the program when this process dies.
	Files []*os.File
	// Check returns an error for a program that must not be run; nil if programs are not checked.
	Check func(path string) error
}

// Result is the result of a hook.
type Result struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration_ns"`
	Output   string        `json:"output,omitempty"`
	Error    string        `json:"error,omitempty"`
	Release  string        `json:"release,omitempty"` // the release of the hook, such as "myapp 2.0"; "" if unknown
}

// Failed is the error of a program of a release that failed.
type Failed struct {
	Stage  string // of the hook, such as pre-release; or the name of a procedure
	Dir    string // of the release, as the hook sees it
	Result Result
	Err    error
}

func (f *Failed) Error() string {
	text := "hook " + f.Result.Name
	if f.Stage != "" {
		text = f.Stage + " " + text
	}
	if f.Result.Release != "" {
		text += " of " + f.Result.Release
	}
	return fmt.Sprintf("%s: %v", text, f.Err)
}
func (f *Failed) Unwrap() error { return f.Err }

// Is reports whether the output of the hook has the text of a system call's error, so that errors.Is finds the error.
func (f *Failed) Is(target error) bool {
	errno, ok := target.(syscall.Errno)
	return ok && process.Printed(f.Result.Output, errno)
}

// SameFailure reports whether programs of two releases with the same name and stage failed with the same error and the
// same output, apart from the directory of the release.
func (f *Failed) SameFailure(other *Failed) bool {
	one, two := f.Result, other.Result
	return f.Stage == other.Stage && one.Name == two.Name && f.anywhere(one.Error) == other.anywhere(two.Error) &&
		f.anywhere(one.Output) == other.anywhere(two.Output)
}

// anywhere returns a text without the directory of the release.
func (f *Failed) anywhere(text string) string {
	if f.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, f.Dir, "")
}

// Run runs the executables of a directory, as seen in the root, in the order of their names. It stops at the first one
// that fails; the error is a *Failed. A missing directory has no hooks.
func Run(ctx context.Context, dir string, o Options) ([]Result, error) {
	names, err := List(filepath.Join(o.Root, dir))
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, name := range names {
		r, err := Program(ctx, filepath.Join(dir, name), o)
		results = append(results, r)
		if err != nil {
			return results, &Failed{Result: r, Err: err}
		}
	}
	return results, nil
}

// Any reports whether a directory has files that Run does not ignore: hooks, or files that it refuses.
func Any(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading hooks: %w", err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ignored(e.Name()) }), nil
}

// List returns the names of the hooks in a directory, in the order in which Run runs them. It returns an error for a
// file that is not executable, since its author expects it to run.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading hooks: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if ignored(name) {
			continue
		}
		if err := checkProgram(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// checkProgram returns an error for a file that is not an executable.
func checkProgram(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("reading hooks: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return diag.Hook.Hint(fmt.Errorf("hook %s is not executable", file),
			"chmod +x it in the source tree, or move it out of the hooks directory")
	}
	return nil
}

func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "README")
}

// Program runs one program in the way hooks are run.
func Program(ctx context.Context, path string, o Options) (Result, error) {
	if o.Check != nil {
		if err := o.Check(path); err != nil {
			return Result{Name: filepath.Base(path), Error: err.Error()}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	out := &bounded{limit: orDefault(o.Output, 64<<10)}
	cmd := exec.CommandContext(ctx, path, o.Args...)
	var sink io.Writer = out
	if o.Tee != nil {
		sink = io.MultiWriter(out, o.Tee)
	}
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Env, o.Dir, o.Stdin, sink, sink
	tree := ownTree(cmd, orDefault(o.Grace, 10*time.Second))
	cmd.SysProcAttr.Chroot = o.Root
	if len(o.Files) > 0 {
		cmd.ExtraFiles, cmd.SysProcAttr.Pdeathsig = o.Files, syscall.SIGKILL
		runtime.LockOSThread() // Pdeathsig is sent when this thread ends, not the process
		defer runtime.UnlockOSThread()
	}
	started := time.Now()
	held, err := tree.Run(ctx)
	if held {
		out.note("[a process that it left behind held its output open, and was killed]")
	}
	r := Result{Name: filepath.Base(path), Duration: time.Since(started), Output: out.String()}
	if err = explain(ctx, err, o.Timeout); err != nil {
		r.Error = err.Error()
	}
	return r, err
}

// explain returns the reason why a program failed; nil for one that exited successfully, even after its time limit.
func explain(ctx context.Context, err error, timeout time.Duration) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return diag.Timeout.Hint(fmt.Errorf("it ran longer than %s and was ended", timeout),
			"make it faster, or raise hooks.timeout in agent.yaml")
	case ctx.Err() != nil:
		return interrupted{ctx.Err()}
	}
	return err
}

// interrupted is the error of a program that was ended because the run was.
type interrupted struct{ error }

func (interrupted) Error() string   { return "interrupted" }
func (i interrupted) Unwrap() error { return i.error }

// ownTree makes a command the root of a process tree that is ended as a whole: with SIGTERM when the context is done,
// and SIGKILL after the grace. WaitDelay bounds the wait for a command that no signal of the tree reached.
func ownTree(cmd *exec.Cmd, grace time.Duration) *process.Tree {
	tree := process.Enclose(cmd)
	cmd.WaitDelay = grace + time.Second
	cmd.Cancel = func() error {
		time.AfterFunc(grace, func() { _ = tree.Signal(syscall.SIGKILL) })
		return tree.Signal(syscall.SIGTERM)
	}
	return tree
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// bounded keeps the first bytes of a hook's output and counts the rest.
type bounded struct {
	mu      sync.Mutex // a process that holds the output may write after the end of the hook
	kept    bytes.Buffer
	limit   int
	dropped int
	notes   string
}

// note adds a line of the agent after the output.
func (b *bounded) note(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes += "\n" + line
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := min(len(p), b.limit-b.kept.Len())
	b.kept.Write(p[:keep])
	b.dropped += len(p) - keep
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.TrimRight(b.kept.String(), "\n")
	if b.dropped > 0 {
		s += "\n[" + diag.Count(b.dropped, "more byte") + " not kept]"
	}
	return strings.TrimLeft(s+b.notes, "\n")
}
