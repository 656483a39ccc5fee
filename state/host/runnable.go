package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// SystemPrograms returns the directories with the programs of a system.
func SystemPrograms() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// SystemProgram returns the path of a program of the system in a root, or exec.ErrNotFound.
func SystemProgram(root, name string) (string, error) {
	for _, dir := range SystemPrograms() {
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

// maxScripts is the number of scripts that the kernel starts by one another.
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
		found, _ := SystemProgram("", word)
		return found
	}
	return ""
}

// pythonLibrary returns the part of the standard library of a Python that another user controls: of the files that
// python3 reads before it runs a line of a program. The worker for modules checks all others when it imports them.
func pythonLibrary(root *walk.Root, program string) *walk.UnsafeError {
	if !strings.HasPrefix(path.Base(program), "python3") {
		return nil
	}
	real, err := root.Resolve(program)
	if err != nil {
		return nil
	}
	var unsafe *walk.UnsafeError
	for _, file := range []string{program, real} { // a virtual environment names its Python there
		for _, at := range []string{path.Dir(file), path.Dir(path.Dir(file))} {
			if errors.As(root.CheckRootOnly(path.Join(at, "pyvenv.cfg")), &unsafe) {
				return unsafe
			}
		}
	}
	for dir := path.Dir(path.Dir(real)); ; dir = path.Dir(dir) {
		for _, lib := range []string{"lib", "lib64"} {
			if unsafe := librariesIn(root, path.Join(dir, lib)); unsafe != nil {
				return unsafe
			}
		}
		if dir == "/" || dir == "." {
			return nil
		}
	}
}

// librariesIn checks the standard libraries of Python in a directory.
func librariesIn(root *walk.Root, lib string) *walk.UnsafeError {
	fd, err := root.Openat(lib, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	d := root.Opened(fd, lib)
	defer d.Close()
	names, _ := d.ReadDir() // an unreadable directory is of no use to python3 either
	var unsafe *walk.UnsafeError
	for _, name := range names {
		if !strings.HasPrefix(name, "python3") {
			continue
		}
		library := path.Join(lib, name)
		for _, file := range []string{"os.py", "io.py", "abc.py", "codecs.py", "site.py", "encodings/__init__.py",
			"encodings/utf_8.py", "encodings/aliases.py", "__pycache__/os", "encodings/__pycache__/utf_8"} {
			if errors.As(root.CheckRootOnly(path.Join(library, file)), &unsafe) {
				return unsafe
			}
		}
	}
	return nil
}

// CheckProgram returns an error if another user can change a program, the interpreter of a script, or what a python3
// reads when it starts. It returns nil for a host that follows every link, and if the agent does not run as root.
func (h *Host) CheckProgram(p string) error {
	if t, ok := h.Files.(*tree); ok {
		return t.checkProgram(p)
	}
	return nil
}

func (t *tree) checkProgram(p string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if unsafe := Replaceable(t.root, p); unsafe != nil {
		return fmt.Errorf("root does not run %s: %w", p, unsafe)
	}
	return nil
}

// CheckScript returns an error if files, those of a host, have a script at a path whose interpreter another user can
// change.
func CheckScript(files any, p string) error {
	t, ok := files.(*tree)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	if unsafe := InterpretedBy(t.root, p); unsafe != nil {
		return unsafe
	}
	return nil
}
