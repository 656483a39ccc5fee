package runnable

import (
	"bufio"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// pythonSettings returns the directories above which a Python looks for its standard library: that of the program,
// that of the program's links' target, and those that pyvenv.cfg names. It also returns the part of what says where
// the library is, or of a place that is named there, that another user controls. Python reads these files before it
// reads its arguments, so no option keeps it from them.
func pythonSettings(root *walk.Root, program, real string) (dirs []string, unsafe *walk.UnsafeError) {
	for _, file := range []string{program, real} { // a virtual environment names its Python beside the link
		dir := path.Dir(file)
		dirs = append(dirs, dir)
		for _, at := range []string{dir, path.Dir(dir)} {
			config := path.Join(at, "pyvenv.cfg")
			if errors.As(root.CheckRootOnly(config), &unsafe) {
				return nil, unsafe
			}
			for _, line := range linesIn(root, config) {
				key, home, _ := strings.Cut(line, "=")
				if home = strings.TrimSpace(home); strings.EqualFold(strings.TrimSpace(key), "home") && home != "" {
					dirs = append(dirs, path.Join("/", home))
				}
			}
		}
		// The name ends at the last dot of the whole path; without one, the file is in the directory / of the worker.
		before := file[:max(0, strings.LastIndex(file, "."))]
		if unsafe = pathFile(root, path.Join("/", before+"._pth")); unsafe != nil {
			return nil, unsafe
		}
	}
	for _, dir := range dirs {
		if unsafe = besidePython(root, dir); unsafe != nil {
			return nil, unsafe
		}
	}
	return dirs, nil
}

// besidePython checks the directory of a Python, and the files in it that name directories of the library.
func besidePython(root *walk.Root, dir string) (unsafe *walk.UnsafeError) {
	// It does not exist, so an error is about the directory and the way to it.
	if errors.As(root.CheckRootOnly(path.Join(dir, ".new")), &unsafe) {
		return unsafe
	}
	for _, name := range namesIn(root, dir) {
		if strings.HasSuffix(name, "._pth") || name == "pybuilddir.txt" {
			if unsafe = pathFile(root, path.Join(dir, name)); unsafe != nil {
				return unsafe
			}
		}
	}
	return nil
}

// pathFile checks a file whose lines name directories and archives of the library, and what they name.
func pathFile(root *walk.Root, file string) (unsafe *walk.UnsafeError) {
	if errors.As(root.CheckRootOnly(file), &unsafe) {
		return unsafe
	}
	for _, line := range linesIn(root, file) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "import ") {
			continue
		}
		at := path.Join(path.Dir(file), line)
		if path.IsAbs(line) {
			at = path.Clean(line)
		}
		if unsafe = libraryAt(root, at); unsafe != nil {
			return unsafe
		}
	}
	return nil
}

// maxSettings is the number of bytes that are read of a file that says where the library is.
const maxSettings = 1 << 20

// linesIn returns the lines of a file; none if it cannot be read.
func linesIn(root *walk.Root, file string) (lines []string) {
	f, err := root.OpenFile(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(io.LimitReader(f, maxSettings)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
