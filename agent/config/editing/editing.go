// Package editing changes agent.yaml through an editor. The user edits a copy. It replaces the file only if it has no
// mistakes and the file has not changed in the meantime, so a running host never reads a half-edited file.
package editing

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
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mode is the mode of a new file: the URL of a webhook in it is often a secret.
const mode = 0o640

// Create writes a new file. It is an error with a hint if the file exists.
func Create(file string, text []byte) error {
	_, err := os.Lstat(file)
	found, err := walk.Found(err)
	if err != nil {
		return err
	}
	if found {
		return exit.WithCode(exit.Usage, diag.Config.Hint(fmt.Errorf("%s exists already", file),
			"corpus-agent config edit changes it"))
	}
	return write(file, text, mode)
}

func write(file string, text []byte, mode fs.FileMode) error {
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(file, text, mode)
}

// Editing has the terminal and the file of an edit.
type Editing struct {
	Sources config.Sources // of the file
	Root    string         // the directory that stands for "/"
	New     []byte         // the text to start from if there is no file
	Getenv  func(string) string

	In  io.Reader // read by the editor
	Err io.Writer // written by the editor, and gets warnings and mistakes

	// Confirm prompts the user and reports whether the answer is yes; nil if there is no terminal.
	Confirm func(ctx context.Context, question string) bool

	copy   string
	before []byte      // content of the file
	info   fs.FileInfo // of the file; nil for no file
}

// errChanged is the error for a file that changed during the editing.
var errChanged = errors.New("the file was changed during the editing, and stays as it is")

// Run edits the file, and reports whether it was replaced. Mistakes are an error if there is no terminal.
func (e *Editing) Run(ctx context.Context) (changed bool, err error) {
	if e.before, e.info, err = read(e.Sources.File); err != nil {
		return false, err
	}
	if e.info == nil {
		e.before = e.New
	}
	dir := filepath.Dir(e.Sources.File)
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	temp, done, err := durable.ScratchIn(dir) // it removes what an edit that was killed left
	if err != nil {
		return false, fmt.Errorf("copying %s: %w", e.Sources.File, err)
	}
	e.copy = filepath.Join(temp, filepath.Base(e.Sources.File))
	if err = os.WriteFile(e.copy, e.before, 0o600); err == nil {
		changed, err = e.untilValid(ctx)
	}
	done()
	return changed, err
}

// read reads a file. Its information is nil if the file does not exist.
func read(file string) ([]byte, fs.FileInfo, error) {
	info, err := os.Lstat(file)
	if found, err := walk.Found(err); !found {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, exit.WithCode(exit.Usage, diag.Config.Hint(fmt.Errorf("%s is not a regular file", file),
			"edit the file that it leads to, or replace it"))
	}
	data, err := walk.ReadFile(file)
	return data, info, err
}

// untilValid opens the editor until the copy has no mistakes or the user gives up.
func (e *Editing) untilValid(ctx context.Context) (bool, error) {
	for {
		if err := e.open(ctx); err != nil {
			return false, err
		}
		text, err := walk.ReadFile(e.copy)
		if err != nil {
			return false, fmt.Errorf("reading the edited copy: %w", err)
		}
		if bytes.Equal(text, e.before) {
			return false, nil
		}
		mistakes := e.mistakes()
		if len(mistakes) == 0 {
			return true, e.install(text)
		}
		if err := e.again(ctx, mistakes); err != nil {
			return false, err
		}
	}
}

// open runs the editor on the copy.
func (e *Editing) open(ctx context.Context) error {
	words := e.editor()
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], e.copy)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Err, e.Err
	if err := cmd.Run(); err != nil {
		return diag.Config.Hint(fmt.Errorf("editor %s: %w; %s is unchanged", words[0], err, e.Sources.File),
			"the variable EDITOR names another editor")
	}
	return nil
}

// editor returns the command of the editor.
func (e *Editing) editor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(e.Getenv(name)); len(words) > 0 {
			return words
		}
	}
	return []string{"vi"}
}

// mistakes checks the copy. Positions name the file that it will replace.
func (e *Editing) mistakes() diag.List {
	sources := e.Sources
	sources.File, sources.Required = e.copy, true
	mistakes, warnings := config.Check(sources, e.Root)
	for _, list := range []diag.List{mistakes, warnings} {
		for _, d := range list {
			if d.Pos.File == e.copy {
				d.Pos.File = e.Sources.File
			}
		}
	}
	for _, d := range warnings {
		fmt.Fprintln(e.Err, "warning:", d.Text())
	}
	return mistakes
}

// again prints the mistakes and asks whether to open the editor again. The error is the answer no, or the mistakes if
// there is no terminal.
func (e *Editing) again(ctx context.Context, mistakes diag.List) error {
	unchanged := fmt.Errorf("%s is unchanged", e.Sources.File)
	if e.Confirm == nil {
		return exit.WithCode(exit.Usage, errors.Join(mistakes.Err(), unchanged))
	}
	for _, d := range mistakes {
		fmt.Fprintln(e.Err, "error:", d.Text())
	}
	if !e.Confirm(ctx, "Edit again?") {
		return exit.WithCode(exit.Usage, unchanged)
	}
	return nil
}

// install replaces the file with the edited text. Its mode and owner stay.
func (e *Editing) install(text []byte) error {
	file := e.Sources.File
	now, info, err := read(file)
	if err != nil {
		return err
	}
	if (info == nil) != (e.info == nil) || info != nil && !bytes.Equal(now, e.before) {
		return e.keep(text)
	}
	if info == nil {
		return write(file, text, mode)
	}
	if err := write(file, text, info.Mode().Perm()); err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return os.Lchown(file, int(owner.Uid), int(owner.Gid))
}

// keep keeps the edited text in a file of its own, since the file was changed. It returns the error that says so.
func (e *Editing) keep(text []byte) error {
	file := e.Sources.File
	kept, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".edited-*")
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", file, errChanged), err)
	}
	_, err = kept.Write(text)
	return exit.WithCode(exit.Locked, diag.Config.Hint(errors.Join(fmt.Errorf("%s: %w", file, errChanged), err,
		kept.Close()), "your version is %s: compare the two", kept.Name()))
}
