package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// obstacles are objects that a user can put in the place of what a state writes, by name.
var obstacles = map[string]struct {
	state string // of the path /srv/app/data/f
	put   func(path string) error
	found string // its description in the report
}{
	"a directory in the place of a file": {"file.managed:\n    - contents: x\n",
		func(p string) error { return os.MkdirAll(p+"/sub", 0o755) }, "a directory"},
	"a named pipe": {"file.managed:\n    - contents: x\n",
		func(p string) error { return unix.Mkfifo(p, 0o644) }, "a named pipe"},
	"a socket": {"file.append:\n    - text: x\n",
		func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o644, 0) }, "a socket"},
	"a file in the place of a directory": {"file.directory: []\n",
		func(p string) error { return os.WriteFile(p, nil, 0o644) }, "a regular file"},
	"a file that is larger than memory": {"file.append:\n    - text: x\n",
		func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40)) }, "a regular file"},
	"a pipe that a template reads": {"file.managed:\n    - contents: x\n" +
		"{% if salt['file.access']('/srv/app/data/f', 'f') %}{{ salt['file.read']('/srv/app/data/f') }}{% endif %}\n",
		func(p string) error { return unix.Mkfifo(p, 0o644) }, "a named pipe"},
	"a deep tree": {"file.directory:\n    - recurse: [mode]\n    - dir_mode: '0750'\n",
		func(p string) error { return os.MkdirAll(p+strings.Repeat("/d", 300), 0o755) }, "a directory"},
	"a file in the place of a parent": {"file.managed:\n    - name: /srv/app/data/f/g/h\n    - contents: x\n" +
		"    - makedirs: True\n", func(p string) error { return os.WriteFile(p, nil, 0o644) }, "a regular file"},
}

// TestObstaclesOfUsersAreHostErrors deploys releases with a state whose path is taken by another object. In a directory
// that a user can write to, the host is at fault: the release is not quarantined, and deployed once the object is gone.
// In a directory where only root can write, the release is at fault.
func TestObstaclesOfUsersAreHostErrors(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, c := range obstacles {
		for _, open := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", by a user", false: ", by root"}[open], func(t *testing.T) {
				t.Parallel()
				l := newNativeLab(t)
				dir := l.Layout.Path("/srv/app/data")
				mode := map[bool]os.FileMode{true: 0o777, false: 0o755}[open]
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode)); err != nil {
					t.Fatal(err)
				}
				l.states("1", goodStates)
				l.expect(exit.OK)
				if err := c.put(filepath.Join(dir, "f")); err != nil {
					t.Fatal(err)
				}
				l.states("2", goodStates+"/srv/app/data/f:\n  "+c.state)
				r := l.expect(exit.RolledBack)
				if !strings.Contains(r.Error, "app.sls:") || r.Hint == "" {
					t.Errorf("the error is %q with the hint %q", r.Error, r.Hint)
				}
				if !open {
					if got := l.inQuarantine(); len(got) != 1 || r.Fault == nil || r.Fault.Of != report.FaultOfRelease {
						t.Errorf("the quarantine is %v, the fault is %+v: %s", got, r.Fault, r.Error)
					}
					return
				}
				if got := l.inQuarantine(); len(got) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost {
					t.Fatalf("the quarantine is %v, the fault is %+v: %s", got, r.Fault, r.Error)
				}
				for _, want := range []string{"/srv/app/data/f", c.found, "any user can change /srv/app/data"} {
					if !strings.Contains(r.Error, want) {
						t.Errorf("the error does not have %q: %s", want, r.Error)
					}
				}
				if !strings.Contains(r.Hint, "ls -ld /srv/app/data/f") {
					t.Errorf("the hint is %q", r.Hint)
				}
				if err := os.RemoveAll(filepath.Join(dir, "f")); err != nil {
					t.Fatal(err)
				}
				l.expect(exit.OK)
				l.links("2", "2", "1")
			})
		}
	}
}

// TestReleasesAreAtFaultForWhatTheyDeclare deploys releases that fail in a directory of a user because of what they
// declare themselves: the bits of a program, or two kinds of object at one path.
func TestReleasesAreAtFaultForWhatTheyDeclare(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	const directory = "/srv/app/data/d:\n  file.directory: []\n"
	file := func(name string) string {
		return "f:\n  file.managed:\n    - name: " + name + "\n    - contents: x\n"
	}
	for name, c := range map[string]struct {
		states string
		want   string // in the error
		host   bool
	}{
		"a setuid program": {"f:\n  file.managed:\n    - name: /srv/app/data/f\n    - contents: x\n    - mode: '4755'\n",
			"setuid and setgid bits are refused", false},
		"a setgid program that exists": {file("/srv/app/data/f") + "g:\n  file.managed:\n    - name: /srv/app/data/f\n" +
			"    - replace: False\n    - mode: '2755'\n", "setuid and setgid bits are refused", false},
		"setuid bits of a tree": {file("/srv/app/data/d/f") + "    - makedirs: True\n/srv/app/data/d:\n  file.directory:\n" +
			"    - file_mode: '4755'\n    - recurse: [mode]\n", "setuid and setgid bits are refused", false},
		"setuid bits of a user's file": {"/srv/app/data/of:\n  file.directory:\n    - file_mode: '4755'\n" +
			"    - recurse: [mode]\n", "setuid and setgid bits are refused", false},
		"a directory and then a file": {directory + file("/srv/app/data/d"), "an earlier state of this run put it there",
			false},
		"a directory that was there, and then a file": {"/srv/app/data/of:\n  file.directory: []\n" +
			file("/srv/app/data/of"), "an earlier state of this run put it there", false},
		"a file and then a directory": {file("/srv/app/data/d") + directory, "an earlier state of this run put it there",
			false},
		"a file and then one below it": {file("/srv/app/data/d") + "g:\n  file.managed:\n    - name: /srv/app/data/d/g\n" +
			"    - contents: x\n    - makedirs: True\n", "an earlier state of this run put it there", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			dir := l.Layout.Path("/srv/app/data")
			if err := errors.Join(os.MkdirAll(dir+"/of", 0o755), os.Chmod(dir, 0o777),
				os.WriteFile(dir+"/of/file", nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			l.states("1", goodStates)
			l.expect(exit.OK)
			l.states("2", goodStates+c.states)
			r := l.expect(exit.RolledBack)
			of, bad := report.FaultOfRelease, 1
			if c.host {
				of, bad = report.FaultOfHost, 0
			}
			if got := l.inQuarantine(); len(got) != bad || r.Fault == nil || r.Fault.Of != of ||
				!strings.Contains(r.Error, c.want) {
				t.Errorf("the quarantine is %v, the fault is %+v: %s\nhint: %s", got, r.Fault, r.Error, r.Hint)
			}
		})
	}
}
