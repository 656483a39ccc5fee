// Package custom adds the grains of an operator: a static file, and directories of programs and files.
//
// The static file is a YAML mapping, /etc/corpus/grains.yaml. It is configuration, so a mistake in it is an error with
// a position, at which the caller must stop.
//
// A grains directory has programs that print a YAML or JSON mapping, and files that contain one. A base project has its
// own directory, a host may have another. Programs run in every run, on every host, and their authors may not be the
// host's operators, so they get a clean environment, a time limit and a bounded output, and the processes that they
// leave running are killed. If a program fails, its grains are missing and the report has a warning. The run continues,
// since one missing fact must not prevent a host from converging. Programs run in parallel; their grains are merged in
// the order of their names.
package custom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Options have the directories of grains, and the settings for running programs.
type Options struct {
	// Dirs are the grains directories in order of increasing precedence. A directory that does not exist is empty.
	Dirs []string
	// Timeout is the time limit of one program; 0 means ten seconds.
	Timeout time.Duration
	// Skip is the reason why programs must not run, such as that the root is not this machine's; "" if they may run.
	Skip string
	// Root is the tree with Dirs, "" for the machine's own. Programs get it as CORPUS_ROOT.
	Root string
	// Chroot makes programs run with Root as their root directory. It needs root.
	Chroot bool
	// Check returns an error for a program that must not be run; nil for no check.
	Check func(path string) error
	// Identity is passed to programs, as CORPUS_SERVICE and so on.
	Identity grains.Identity
	// ModuleDirs are directories with only Salt's grain modules, in order of increasing precedence: files NAME.py, with
	// any mode.
	ModuleDirs []string
	// Modules runs grain modules, which are Python for Salt's loader, and returns an answer for each file. A file
	// without an answer has no grains. nil if they cannot be run.
	Modules func(ctx context.Context, files []string) (map[string]ModuleAnswer, error)
}

// ModuleAnswer has the grains that the functions of a grain module returned, and the errors.
type ModuleAnswer struct {
	Grains   *value.Map
	Problems []error
}

// Result has the grains of all directories.
type Result struct {
	Grains   *value.Map
	Skipped  []string // programs that were not run because of Options.Skip
	Warnings []error  // reasons why grains are missing, with hints
	// Unreadable are the errors of directories and files that could not be read. Their grains are unknown, so the
	// caller must not base decisions on Grains.
	Unreadable []error
}

// atOnce is the number of programs that run concurrently.
const atOnce = 4

// Load runs the programs and reads the files of all directories. Grains of a later directory take precedence, and in a
// directory those of a later name.
func Load(ctx context.Context, o Options) Result {
	result := Result{Grains: value.NewMap()}
	var found []entry
	for _, dir := range o.ModuleDirs {
		entries, err := listModules(dir)
		if err != nil {
			result.Unreadable = append(result.Unreadable, fmt.Errorf("grains directory: %w", err))
		}
		found = append(found, entries...)
	}
	for _, dir := range o.Dirs {
		entries, err := list(dir)
		if err != nil {
			result.Unreadable = append(result.Unreadable, fmt.Errorf("grains directory: %w", err))
		}
		found = append(found, entries...)
	}
	answers := make([]answer, len(found))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, e := range found {
		slots <- struct{}{}
		wait.Go(func() {
			answers[i] = o.load(ctx, e)
			<-slots
		})
	}
	wait.Wait()
	result.Warnings = append(result.Warnings, o.runModules(ctx, found, answers)...)
	for i, a := range answers {
		result.Grains.Update(a.grains)
		switch {
		case a.err == nil:
		case found[i].kind == static && diag.CauseOf(a.err) != nil:
			result.Unreadable = append(result.Unreadable, a.err)
		default:
			result.Warnings = append(result.Warnings, a.err)
		}
		if o.Skip != "" && (found[i].kind == program || found[i].kind == saltModule && o.Modules != nil) {
			result.Skipped = append(result.Skipped, found[i].path)
		}
	}
	return result
}

type answer struct {
	grains *value.Map
	err    error
}

func (o Options) load(ctx context.Context, e entry) answer {
	switch e.kind {
	case static:
		m, err := ReadFile(e.path)
		return answer{m, err}
	case saltModule:
		if o.Modules != nil {
			return answer{} // runModules sets it
		}
		return answer{nil,
			diag.Grains.Hint(fmt.Errorf("%s is a grain module for Salt, which is not run: it needs Salt's loader", e.path),
				"make it a program that prints its grains as JSON: add #!/usr/bin/env python3, print(json.dumps(...)), and "+
					"chmod +x")}
	case forgotten:
		return answer{nil,
			diag.Grains.Hint(fmt.Errorf("%s looks like a program but is not executable, so it was not run", e.path),
				"chmod +x %s", e.path)}
	}
	if o.Skip != "" {
		return answer{}
	}
	if o.Check != nil {
		if err := o.Check(e.path); err != nil {
			return answer{nil, err}
		}
	}
	m, err := o.run(ctx, e.path)
	return answer{m, err}
}

// kind is the kind of a file in a grains directory.
type kind int

const (
	other kind = iota
	program
	static
	saltModule
	forgotten // a program that is not executable
)

type entry struct {
	path string
	kind kind
}

// list returns the files to read and the programs to run in a directory, by name.
func list(dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []entry
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		k, err := classify(path)
		if err != nil {
			return nil, err
		}
		if k != other {
			found = append(found, entry{path, k})
		}
	}
	return found, nil
}

// classify returns the kind of a file. Directories, hidden files, leftovers of editors and packages, and texts such as
// a README are other.
func classify(path string) (kind, error) {
	name := filepath.Base(path)
	if strings.HasPrefix(name, ".") {
		return other, nil
	}
	info, err := os.Stat(path)
	if found, err := walk.Found(err); err != nil || !found || !info.Mode().IsRegular() {
		return other, err
	}
	shebang, err := hasShebang(path)
	executable := info.Mode().Perm()&0o111 != 0
	switch ext := filepath.Ext(name); {
	case strings.HasSuffix(name, "~"), strings.HasPrefix(ext, ".dpkg-"), strings.HasPrefix(ext, ".rpm"), ext == ".pyc":
		return other, nil
	case ext == ".py" && !(executable && shebang):
		return saltModule, err
	case executable:
		return program, nil
	case ext == ".yaml", ext == ".yml", ext == ".json":
		return static, nil
	case shebang:
		return forgotten, nil
	}
	return other, err
}

func hasShebang(path string) (bool, error) {
	f, err := walk.OpenFile(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var start [2]byte
	n, err := f.Read(start[:])
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return bytes.Equal(start[:n], []byte("#!")), err
}
