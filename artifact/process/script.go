package process

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// longestFirstLine is how much of a script's first line the kernel reads (BINPRM_BUF_SIZE).
const longestFirstLine = 256

// Start starts a command. The error has a hint where the command is a script with a first line that the kernel cannot
// follow.
func Start(cmd *exec.Cmd) error {
	err := cmd.Start()
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return diag.WithHint(err, "%s", "start the file with the program that reads it, such as #!/bin/sh")
	case errors.Is(err, syscall.ENOENT) && filepath.IsAbs(cmd.Path):
		root := ""
		if cmd.SysProcAttr != nil {
			root = cmd.SysProcAttr.Chroot
		}
		if hint := ScriptHint(cmd.Path, firstLine(filepath.Join(root, cmd.Path)), inRoot(root)); hint != "" {
			return diag.WithHint(err, "%s", hint)
		}
	}
	return err
}

// inRoot returns a function that reports whether a path exists below a root.
func inRoot(root string) func(string) bool {
	return func(path string) bool {
		found, err := walk.Exists(filepath.Join(root, path))
		return found || err != nil
	}
}

func firstLine(file string) string {
	f, err := walk.OpenFile(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, longestFirstLine)).ReadString('\n') // what could be read is looked at
	return strings.TrimSuffix(line, "\n")
}

// ScriptHint returns what to do about a script that cannot be started for its first line, which is given without its
// newline: it has Windows line ends, or its interpreter does not exist. It returns "" where the line is not at fault.
func ScriptHint(file, line string, exists func(path string) bool) string {
	words, isScript := strings.CutPrefix(line, "#!")
	fields := strings.Fields(words)
	switch {
	case !isScript || len(fields) == 0:
		return ""
	case strings.HasSuffix(line, "\r"):
		return "its lines end as on Windows (CRLF), and the kernel looks for the interpreter " + fields[0] +
			"\\r: sed -i 's/\\r$//' " + filepath.Base(file) + " in the source tree"
	case !filepath.IsAbs(fields[0]):
		return "its first line names " + fields[0] + ": write the absolute path of the interpreter, such as #!/bin/sh"
	case !exists(fields[0]):
		return "its first line names " + fields[0] + ", which this host does not have: install it, or correct the line"
	}
	return ""
}
