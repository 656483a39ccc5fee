package runnable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host/runnable"
)

// user owns what root must not run.
const user = 65534

// TestPythonThatOtherUsersCanReplaceIsNotRun checks python3 in a root: the program, the target of a link, the
// interpreter of a script, and the standard library.
func TestPythonThatOtherUsersCanReplaceIsNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	script, venv := "#!/opt/py/bin/python3.11\n", "#!/opt/venv/bin/python\n"
	for name, c := range map[string]struct{ program, theirs, link string }{
		"nothing":      {"", "", ""},
		"the program":  {"", "usr/local/bin/python3", ""},
		"a home":       {"", "home/dev", "/home/dev/python3.11"},
		"interpreter":  {script, "opt/py/bin/python3.11", ""},
		"directory":    {"", "usr/local/bin", ""},
		"library":      {"", "opt/py/lib/python3.11", "/opt/py/bin/python3.11"},
		"codecs":       {"", "opt/py/lib/python3.11/encodings/__init__.py", "/opt/py/bin/python3.11"},
		"compiled":     {"", "opt/py/lib/python3.11/__pycache__/os.cpython-311.pyc", "/opt/py/bin/python3.11"},
		"root's link":  {"", "", "/opt/py/bin/python3.11"},
		"root's words": {script, "", ""},
		// A virtual environment has a link `python`, which says nothing about the version.
		"venv of root":    {venv, "", ""},
		"venv's library":  {venv, "opt/py/lib/python3.11/os.py", ""},
		"venv's settings": {venv, "opt/venv/pyvenv.cfg", ""},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"usr/local/bin/python3": c.program, "opt/py/bin/python3.11": "",
			"home/dev/python3.11": "", "opt/venv/pyvenv.cfg": "", "opt/venv/bin/pip": "",
			"opt/py/lib/python3.11/os.py": "", "opt/py/lib/python3.11/encodings/__init__.py": "",
			"opt/py/lib/python3.11/__pycache__/os.cpython-311.pyc": ""} {
			at := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/opt/py/bin/python3.11", filepath.Join(dir, "opt/venv/bin/python")); err != nil {
			t.Fatal(err)
		}
		if c.link != "" {
			at := filepath.Join(dir, "usr/local/bin/python3")
			if err := errors.Join(os.Remove(at), os.Symlink(c.link, at)); err != nil {
				t.Fatal(err)
			}
		}
		if c.theirs != "" {
			if err := os.Chown(filepath.Join(dir, c.theirs), user, user); err != nil {
				t.Fatal(err)
			}
		}
		root, err := walk.Open(walk.Options{Dir: dir, Safe: true})
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		refused := runnable.Replaceable(root, "/usr/local/bin/python3")
		if c.theirs == "" && refused != nil ||
			c.theirs != "" && (refused == nil || !strings.Contains(refused.Error(), "/"+c.theirs)) {
			t.Errorf("%s: %v, want an error about %q", name, refused, c.theirs)
		}
	}
}

// TestPythonWhoseLibraryOtherUsersNameIsNotRun checks the files of root, and of a user, that say where a python3 finds
// its standard library.
func TestPythonWhoseLibraryOtherUsersNameIsNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	type texts map[string]string
	const bin, lib = "usr/local/bin/", "usr/local/lib/"
	for name, c := range map[string]struct {
		files  texts
		theirs string
		fine   bool
	}{
		"home":              {files: texts{bin + "pyvenv.cfg": "a = b\nHome = /home/u/bin\n"}, theirs: "home/u"},
		"home one up":       {files: texts{"usr/local/pyvenv.cfg": "home=/home/u/bin"}, theirs: "home/u"},
		"library of home":   {files: texts{bin + "pyvenv.cfg": "home = /home/u/bin"}, theirs: "home/u/lib/python3.11"},
		"home of root":      {files: texts{bin + "pyvenv.cfg": "home = /home/u/bin"}, fine: true},
		"path file":         {files: texts{bin + "python3._pth": "# a\n/home/u/lib/python3.11\n"}, theirs: "home/u"},
		"path file's lines": {files: texts{bin + "python311._pth": ".\n../../../home/u/lib"}, theirs: "home/u/lib"},
		"their path file":   {files: texts{bin + "python3._pth": ""}, theirs: bin + "python3._pth"},
		"path file in /":    {files: texts{"._pth": "/home/u"}, theirs: "home/u"},
		"path file of root": {files: texts{bin + "python3._pth": "import site\n/home/u/lib"}, fine: true},
		"build":             {files: texts{bin + "pybuilddir.txt": "build"}, theirs: bin + "pybuilddir.txt"},
		"place of build":    {files: texts{bin + "pybuilddir.txt": "/home/u/lib"}, theirs: "home/u"},
		"archive":           {files: texts{lib + "python311.zip": "PK"}, theirs: lib + "python311.zip"},
		"archive of root":   {files: texts{lib + "python311.zip": "PK"}, fine: true},
	} {
		dir := t.TempDir()
		write := func(file, text string) {
			at := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{bin + "python3", "home/u/bin/python3", "home/u/lib/python3.11/os.py"} {
			write(file, "")
		}
		for file, text := range c.files {
			write(file, text)
		}
		if !c.fine {
			if err := os.Chown(filepath.Join(dir, c.theirs), user, user); err != nil {
				t.Fatal(err)
			}
		}
		root, err := walk.Open(walk.Options{Dir: dir, Safe: true})
		if err != nil {
			t.Fatal(err)
		}
		refused := runnable.Replaceable(root, "/usr/local/bin/python3")
		root.Close()
		if c.fine != (refused == nil) || refused != nil && !strings.Contains(refused.Error(), "/"+c.theirs) {
			t.Errorf("%s: %v, want an error about %q", name, refused, c.theirs)
		}
	}
}
