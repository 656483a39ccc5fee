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

// longestFirstLine is the maximum number of bytes that the kernel reads of a script's first line (BINPRM_BUF_SIZE).
const longestFirstLine = 256

// Start starts a command. If the command is a script whose first line the kernel cannot follow, the error has a hint.
func Start(cmd *exec.Cmd) error {
	err := cmd.Start()
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return diag.Program.Hint(err, "%s", "start the file with the program that reads it, such as #!/bin/sh")
	case errors.Is(err, syscall.ENOENT) && filepath.IsAbs(cmd.Path):
		root := ""
		if cmd.SysProcAttr != nil {
			root = cmd.SysProcAttr.Chroot
		}
		if hint := ScriptHint(cmd.Path, firstLine(filepath.Join(root, cmd.Path)), inRoot(root)); hint != "" {
			return diag.Program.Hint(err, "%s", hint)
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
	line, _ := bufio.NewReader(io.LimitReader(f, longestFirstLine)).ReadString('\n') // errors do not matter
	return strings.TrimSuffix(line, "\n")
}

// ScriptHint returns a hint about a script that cannot be started because of its first line, given without its newline:
// it has Windows line ends, or its interpreter does not exist. It returns "" if the line is not the cause.
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
