// Package runnable finds programs of a host, and says whether root may run them: whether another user controls the
// program, the interpreter of a script, or what a Python reads when it starts.
package runnable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Directories returns the directories with the programs of a system.
func Directories() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// Find returns the path of a program of the system in a root, or an error that wraps exec.ErrNotFound.
func Find(root, name string) (string, error) {
	for _, dir := range Directories() {
		found, err := process.LookIn(root, dir, name)
		if err != nil {
			return "", err
		}
		if found {
			return dir + "/" + name, nil
		}
	}
	return "", fmt.Errorf("%w: %s", exec.ErrNotFound, name)
}

// Replaceable returns the part of a program, of the interpreter of a script, or of the library of a Python, that
// another user controls; nil if there is none. For a file that does not exist it checks the directories above.
func Replaceable(root *walk.Root, file string) *walk.UnsafeError {
	var unsafe *walk.UnsafeError
	if errors.As(root.CheckRootOnly(file), &unsafe) {
		return unsafe
	}
	if unsafe := InterpretedBy(root, file); unsafe != nil {
		return unsafe
	}
	return pythonLibrary(root, file)
}

// maxScripts is the number of scripts that may be the interpreter of one another: the kernel refuses more.
const maxScripts = 5

// InterpretedBy returns the part of the interpreter of a script that another user controls, also if the interpreter
// is a script, too. It returns nil if there is none, if the file is not a script, and if another user controls the
// script itself.
func InterpretedBy(root *walk.Root, script string) *walk.UnsafeError {
	var unsafe *walk.UnsafeError
	if errors.As(root.CheckRootOnly(script), &unsafe) {
		return nil
	}
	for range maxScripts {
		if script = interpreter(root, script); script == "" {
			return nil
		}
		if errors.As(root.CheckRootOnly(script), &unsafe) {
			return unsafe
		}
		if unsafe := pythonLibrary(root, script); unsafe != nil {
			return unsafe
		}
	}
	return nil
}

// interpreter returns the program that runs a script; "" if the file is not a script.
func interpreter(root *walk.Root, script string) string {
	f, err := root.OpenFile(script, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	words, isScript := strings.CutPrefix(line, "#!")
	fields := strings.Fields(words)
	if !isScript || len(fields) == 0 {
		return ""
	}
	if path.Base(fields[0]) != "env" {
		return fields[0]
	}
	for _, word := range fields[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		found, _ := Find("", word)
		return found
	}
	return ""
}
