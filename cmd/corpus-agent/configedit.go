package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit the configuration file, and install it only without mistakes",
		Long: `edit opens a copy of agent.yaml (or --config FILE) in $VISUAL, $EDITOR, editor or vi, and checks it as config check
does. Without mistakes the copy replaces the file at once. With mistakes, edit prints them and offers to open the editor
again; without a terminal it exits with 2. The file itself stays unchanged until then. A file that another program
changed during the editing is not replaced: the error names the edited copy. Without a file, the editor starts with all
settings as comments.`,
		Example: `  sudo corpus-agent config edit
  EDITOR="sed -i s/^#reports.upload:.*/reports.upload:true/" corpus-agent config edit`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sources, err := p.sources(map[string]string{})
			if err != nil {
				return err
			}
			return p.editConfig(c.Context(), sources)
		},
	}
}

// edited is a configuration file while its copy is edited.
type edited struct {
	program *program
	sources config.Sources // of the file
	copy    string
	before  []byte // nil for no file
	info    fs.FileInfo
}

func (p *program) editConfig(ctx context.Context, sources config.Sources) error {
	e := &edited{program: p, sources: sources}
	var err error
	if e.before, e.info, err = readConfig(sources.File); err != nil {
		return err
	}
	text := e.before
	if e.info == nil {
		text = p.example()
	}
	if err := durable.MkdirAll(filepath.Dir(sources.File), 0o755); err != nil {
		return err
	}
	dir, err := durable.TempDir(filepath.Dir(sources.File))
	if err != nil {
		return fmt.Errorf("copying %s: %w", sources.File, err)
	}
	e.copy = filepath.Join(dir, filepath.Base(sources.File))
	if err = os.WriteFile(e.copy, text, 0o600); err == nil {
		err = e.untilValid(ctx, text)
	}
	if !errors.Is(err, errChanged) {
		err = errors.Join(err, durable.RemoveTemp(context.WithoutCancel(ctx), dir))
	}
	return err
}

// readConfig reads a file. Its information is nil if the file does not exist.
func readConfig(file string) ([]byte, fs.FileInfo, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s is not a regular file", file),
			"edit the file that it leads to, or replace it"))
	}
	data, err := walk.ReadFile(file)
	return data, info, err
}

// errChanged is the error for a file that changed during the editing.
var errChanged = errors.New("the file was changed during the editing, and stays as it is")

// untilValid opens the editor until the copy has no mistakes or the user gives up.
func (e *edited) untilValid(ctx context.Context, text []byte) error {
	for {
		if err := e.open(ctx); err != nil {
			return err
		}
		now, err := walk.ReadFile(e.copy)
		if err != nil {
			return fmt.Errorf("reading the edited copy: %w", err)
		}
		if bytes.Equal(now, text) {
			return e.program.answer(map[string]any{"file": e.sources.File, "changed": false}, e.sources.File+" is unchanged")
		}
		mistakes := e.mistakes()
		if len(mistakes) == 0 {
			return e.install(now)
		}
		if err := e.again(mistakes); err != nil {
			return err
		}
	}
}

// open runs the editor on the copy.
func (e *edited) open(ctx context.Context) error {
	words, err := e.editor()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], e.copy)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.program.In, e.program.Err, e.program.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w; %s is unchanged", words[0], err, e.sources.File)
	}
	return nil
}

// editor is the command of the editor.
func (e *edited) editor() ([]string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(e.program.Getenv(name)); len(words) > 0 {
			return words, nil
		}
	}
	for _, name := range []string{"editor", "vi"} {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name}, nil
		}
	}
	return nil, exit.WithCode(exit.Usage, diag.WithHint(errors.New("there is no editor"), "set EDITOR"))
}

// mistakes checks the copy. Positions name the file that it will replace.
func (e *edited) mistakes() diag.List {
	sources := e.sources
	sources.File, sources.Required = e.copy, true
	mistakes, warnings := config.Check(sources, e.program.layout().Root)
	for _, d := range append(mistakes, warnings...) {
		if d.Pos.File == e.copy {
			d.Pos.File = e.sources.File
		}
	}
	for _, d := range warnings {
		fmt.Fprintln(e.program.Err, "warning:", d.Text())
	}
	return mistakes
}

// again prints the mistakes and asks whether to open the editor again. The error is that the user gives up, or that
// there is no terminal to ask on.
func (e *edited) again(mistakes diag.List) error {
	refused := exit.WithCode(exit.Usage, mistakes.Err())
	in := cli.InputTerminal(e.program.In)
	if in == nil {
		return errors.Join(refused, fmt.Errorf("%s is unchanged", e.sources.File))
	}
	for _, d := range mistakes {
		fmt.Fprintln(e.program.Err, "error:", d.Text())
	}
	fmt.Fprint(e.program.Err, "Edit again? [Y/n] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); err != nil || a == "n" || a == "no" {
		return exit.WithCode(exit.Usage, fmt.Errorf("%s is unchanged", e.sources.File))
	}
	return nil
}

// install replaces the file with the edited text. Its mode and owner stay.
func (e *edited) install(text []byte) error {
	file := e.sources.File
	now, info, err := readConfig(file)
	if err != nil {
		return err
	}
	if (info == nil) != (e.info == nil) || !bytes.Equal(now, e.before) {
		return exit.WithCode(exit.Locked, diag.WithHint(fmt.Errorf("%s: %w", file, errChanged),
			"your version is %s: compare the two", e.copy))
	}
	mode := fs.FileMode(newMode)
	if info != nil {
		mode = info.Mode().Perm()
	}
	if err := e.program.writeConfig(file, text, mode); err != nil {
		return err
	}
	if was, ok := e.owner(); ok {
		if err := os.Lchown(file, int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return e.program.answer(map[string]any{"file": file, "changed": true}, "installed "+file)
}

// owner is the owner of the file before the editing; false for a new file.
func (e *edited) owner() (*syscall.Stat_t, bool) {
	if e.info == nil {
		return nil, false
	}
	st, ok := e.info.Sys().(*syscall.Stat_t)
	return st, ok
}
