// Package program runs the programs that states use, such as git or psql: as the user who owns the files on which they
// work, within a time limit, and with errors that have the messages of the program.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
)

// Program is a program of the host that states use, such as git or psql.
type Program struct {
	Name    string   // looked up in the host's directories of programs; a path is used unchanged
	Package string   // package that contains the program, for messages; Name by default
	RunAs   string   // user name; "" for the agent's own
	Dir     string   // the user's home by default
	Target  string   // a directory that the program fills; "" for none
	Reads   []string // files and directories, below Dir unless absolute, that the program reads or runs: see rootsOwn
	Env     []string // NAME=value, on top of the agent's own
	Stdin   string
	// Limit is the time limit; 0 means an hour, or five minutes for Ask. A user's configuration can make a program hang.
	Limit  time.Duration
	Umask  *int
	Remote bool // it connects to another server: a failure to reach that is an *outage.Error
	// Hide removes secrets from what the program prints; nil removes nothing.
	Hide func(text string) string
}

// limit returns the time limit of the program.
func (p Program) limit(query bool) time.Duration {
	switch {
	case p.Limit > 0:
		return p.Limit
	case query:
		return 5 * time.Minute
	}
	return time.Hour
}

// Error is the error of a program that ended with a code other than 0, or exceeded its time limit.
type Error struct {
	Program string
	Code    int
	Stdout  string
	Stderr  string
	Timeout bool
}

func (e *Error) Error() string {
	if e.Timeout {
		return e.Program + " did not end in time"
	}
	output := cause(e.Stderr)
	if output == "" {
		output = lastLines(e.Stdout)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s ended with code %d: %s", e.Program, e.Code, output), ": ")
}

// cause returns the last lines of the output of a program. It ignores the lines after the first line of git about a
// failure, which are advice.
func cause(output string) string {
	before := ""
	for line := range strings.Lines(output) {
		before += line
		if strings.HasPrefix(line, "fatal: ") {
			return lastLines(before)
		}
	}
	return lastLines(output)
}

// lastLines returns the last lines of the output of a program, short enough for an error.
func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// Ready reports whether the program is installed. If no program may run on h, the error is a *host.Skipped.
func (p Program) Ready(h *host.Host) (bool, error) {
	if err := h.Commands.Allowed(p.Name); err != nil {
		return false, err
	}
	_, ok := p.path(h)
	return ok, nil
}

func (p Program) path(h *host.Host) (string, bool) {
	if !strings.Contains(p.Name, "/") {
		return h.Which(p.Name)
	}
	// In a virtual environment, python is a link to the system's python. asOwner determines the user to run it.
	info, err := h.Following().Files.Stat(p.Name)
	return p.Name, err == nil && info.IsRegular() && info.Mode&0o111 != 0
}

// Missing returns the error of a state that needs the program if it is not installed.
func (p Program) Missing() error {
	from := p.Package
	if from == "" {
		from = p.Name
	}
	return diag.Program.Hint(fmt.Errorf("there is no program %s on this host", p.Name),
		"install the package %s, in a state that this one requires", from)
}

// Ask runs the program to read something and returns its output. If the exit code is not 0, the error wraps an *Error.
func (p Program) Ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	return p.run(ctx, h, true, args)
}

// Do runs the program to change something.
func (p Program) Do(ctx context.Context, h *host.Host, args ...string) (string, error) {
	return p.run(ctx, h, false, args)
}

func (p Program) run(ctx context.Context, h *host.Host, quiet bool, args []string) (string, error) {
	if err := h.Commands.Allowed(p.Name); err != nil {
		return "", err
	}
	file, ok := p.path(h)
	if !ok {
		return "", p.Missing()
	}
	if err := p.asOwner(h); err != nil {
		return "", err
	}
	if err := p.rootsOwn(h, args); err != nil {
		return "", err
	}
	for _, dir := range []string{p.Dir, p.Target} {
		if err := h.Obstructed(cmp.Or(dir, "/")); err != nil {
			return "", err
		}
	}
	out, err := h.Shell(ctx, host.Line{
		Argv: append([]string{file}, args...), Text: p.Name, Dir: p.Dir, RunAs: p.RunAs, Env: p.Env, Stdin: p.Stdin,
		Limit: p.limit(quiet), Umask: p.Umask, Quiet: quiet,
	})
	if err != nil {
		return out.Stdout, fmt.Errorf("running %s: %w", path.Base(p.Name), err)
	}
	if out.Code == 0 && !out.TimedOut {
		return out.Stdout, nil
	}
	failure := &Error{Program: path.Base(p.Name), Code: out.Code, Stdout: out.Stdout, Stderr: out.Stderr,
		Timeout: out.TimedOut}
	if p.Hide != nil {
		failure.Stdout, failure.Stderr = p.Hide(out.Stdout), p.Hide(out.Stderr)
	}
	if p.Remote {
		return out.Stdout, outage.Recognize(ctx, failure.Stderr+"\n"+failure.Stdout, failure)
	}
	return out.Stdout, failure
}

// Runner returns the name of the user as whom the program runs: RunAs, or else the owner of the files on which it
// works. It returns "" for the agent's own user.
func (p Program) Runner(h *host.Host) (string, error) {
	err := p.asOwner(h)
	return p.RunAs, err
}

// asOwner sets an empty RunAs to the owner of the program's working directory, target directory or own directory, since
// files there determine what the program does.
func (p *Program) asOwner(h *host.Host) error {
	places := []string{p.Dir, p.Target}
	if strings.Contains(p.Name, "/") {
		places = append(places, path.Dir(p.Name))
	}
	for _, dir := range places {
		if p.RunAs != "" || !path.IsAbs(dir) {
			continue
		}
		owner, err := h.OwnerOf(dir)
		if err != nil {
			return err
		}
		p.RunAs = owner
	}
	return nil
}

// rootsOwn returns an error if the program would run as root and an unprivileged user controls a file that it reads or
// runs. It checks the program itself, if Name is a path, the parts of its virtual environment or of the one that it
// creates, Reads, and the regular files that its arguments name. Other files in Dir may belong to a user, for example
// the data of a project. A file may be missing if no such user can create it.
func (p *Program) rootsOwn(h *host.Host, args []string) error {
	if p.RunAs != "" && p.RunAs != "root" {
		return nil
	}
	for _, part := range p.parts(h, args) {
		if err := h.CheckRootOnly(part); path.IsAbs(part) && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// parts returns the files that determine what the program does: the program, its environment, and the files that it
// reads.
func (p *Program) parts(h *host.Host, args []string) []string {
	parts := regularFiles(h, args)
	if strings.Contains(p.Name, "/") {
		parts = append(parts, p.Name)
		if env := path.Dir(path.Dir(p.Name)); isEnvironment(h, env) {
			parts = append(parts, environmentParts(env)...)
		}
	}
	if p.Target != "" {
		parts = append(parts, environmentParts(p.Target)...)
	}
	for _, name := range p.Reads {
		if !path.IsAbs(name) {
			name = path.Join(p.Dir, name)
		}
		parts = append(parts, name)
	}
	return parts
}

// Trusting adds to Reads the files and directories that arguments or settings of the program name by absolute paths.
// Such an argument is a path, a URL of the scheme file, an option with one of both (--option=/path), or a requirement
// of pip (name @ file:///path). Others are left out. Paths of regular files among the arguments of Ask and Do are
// checked in any case.
func (p Program) Trusting(arguments ...string) Program {
	p.Reads = slices.Clone(p.Reads)
	for _, a := range arguments {
		if file := fileIn(a); file != "" {
			p.Reads = append(p.Reads, file)
		}
	}
	return p
}

// fileIn returns the absolute path in an argument, or "" if there is none.
func fileIn(argument string) string {
	if strings.HasPrefix(argument, "-") {
		_, argument, _ = strings.Cut(argument, "=")
	} else if _, at, found := strings.Cut(argument, " @ "); found {
		argument = strings.TrimSpace(at)
	}
	argument = strings.TrimPrefix(strings.TrimPrefix(argument, "file://localhost"), "file://")
	if !path.IsAbs(argument) {
		return ""
	}
	return argument
}

// regularFiles returns the paths in arguments that lead to regular files.
func regularFiles(h *host.Host, arguments []string) (files []string) {
	for _, a := range arguments {
		if file := fileIn(a); file != "" {
			if info, err := h.Following().Files.Stat(file); err == nil && info.IsRegular() {
				files = append(files, file)
			}
		}
	}
	return files
}

// isEnvironment reports whether a directory is a virtual environment of Python.
func isEnvironment(h *host.Host, dir string) bool {
	_, err := h.Files.Lstat(path.Join(dir, "pyvenv.cfg"))
	return err == nil
}

// environmentParts returns the parts of a Python virtual environment that determine what its programs run.
func environmentParts(dir string) (parts []string) {
	for _, name := range []string{"pyvenv.cfg", "bin", "lib", "lib64"} {
		parts = append(parts, path.Join(dir, name))
	}
	return parts
}

// EndedWith reports whether an error wraps the *Error of a program that exited with one of the given codes.
func EndedWith(err error, codes ...int) bool {
	var failure *Error
	return errors.As(err, &failure) && !failure.Timeout && slices.Contains(codes, failure.Code)
}
