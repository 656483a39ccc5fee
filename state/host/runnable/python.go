package runnable

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// pythonLibrary returns the part of the standard library of a Python that another user controls: of the files that
// python3 reads before it runs a line of a program. The worker for modules checks all others when it imports them.
// Scripts run without -S, so python3 also reads sitecustomize and .pth files, which are not checked here.
func pythonLibrary(root *walk.Root, program string) *walk.UnsafeError {
	real, err := root.Resolve(program)
	if err != nil {
		return nil
	}
	isPython := func(file string) bool { return strings.HasPrefix(path.Base(file), "python3") }
	if !isPython(program) && !isPython(real) { // a virtual environment has a link `python`
		return nil
	}
	dirs, unsafe := pythonSettings(root, program, real)
	for i, dir := range dirs {
		if unsafe == nil && !slices.Contains(dirs[:i], dir) {
			unsafe = librariesAbove(root, dir)
		}
	}
	return unsafe
}

// librariesAbove checks the standard libraries of Python in the directories above one with programs.
func librariesAbove(root *walk.Root, dir string) *walk.UnsafeError {
	for dir = path.Dir(dir); ; dir = path.Dir(dir) {
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
	if real, err := root.Resolve(lib); err != nil || lib != real && real == "/usr"+lib {
		return nil // /lib is often a link to /usr/lib, which is checked as well
	}
	for _, name := range namesIn(root, lib) {
		if !strings.HasPrefix(name, "python3") {
			continue
		}
		if unsafe := libraryAt(root, path.Join(lib, name)); unsafe != nil {
			return unsafe
		}
	}
	return nil
}

// libraryAt checks a directory or an archive in which python3 looks for its standard library, such as
// /usr/lib/python311.zip.
func libraryAt(root *walk.Root, at string) *walk.UnsafeError {
	d, err := root.OpenDir(at)
	if err != nil {
		var unsafe *walk.UnsafeError
		errors.As(root.CheckRootOnly(at), &unsafe)
		return unsafe
	}
	d.Close()
	for dir, modules := range startModules() {
		if unsafe := modulesIn(root, path.Join(at, dir), modules); unsafe != nil {
			return unsafe
		}
	}
	return nil
}

// startModules returns the modules that python3 imports when it starts, by their directories in the library. To check
// all files of the library would take longer than python3 takes to start.
func startModules() map[string][]string {
	return map[string][]string{
		"": {"os", "io", "abc", "codecs", "site", "stat", "posixpath", "genericpath", "_collections_abc",
			"_sitebuiltins"},
		"encodings": {"__init__", "aliases", "ascii", "latin_1", "utf_8"},
	}
}

// modulesIn checks the sources of modules, which are in a directory, and their compiled files.
func modulesIn(root *walk.Root, dir string, modules []string) *walk.UnsafeError {
	for _, at := range []string{dir, path.Join(dir, "__pycache__")} {
		var unsafe *walk.UnsafeError
		// It does not exist, so an error is about the directory and the way to it.
		if errors.As(root.CheckRootOnly(path.Join(at, ".new")), &unsafe) {
			return unsafe
		}
		d, err := root.OpenDir(at)
		if err != nil {
			continue
		}
		err = moduleFiles(root, d, at, modules)
		d.Close()
		if errors.As(err, &unsafe) {
			return unsafe
		}
	}
	return nil
}

// moduleFiles checks the files of modules in an open directory.
func moduleFiles(root *walk.Root, d *walk.Dir, at string, modules []string) error {
	names, _ := d.ReadDir() // python3 cannot use an unreadable directory either
	for _, name := range names {
		module, _, _ := strings.Cut(name, ".")
		if !slices.Contains(modules, module) {
			continue
		}
		if err := d.CheckRootOnly(name); err != nil {
			return err
		}
		if st, err := d.Lstat(name); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			if err := root.CheckRootOnly(path.Join(at, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesIn returns the names in a directory; none if it cannot be read, since python3 cannot use it either.
func namesIn(root *walk.Root, dir string) []string {
	fd, err := root.Openat(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	d := root.Opened(fd, dir)
	defer d.Close()
	names, _ := d.ReadDir()
	return names
}
