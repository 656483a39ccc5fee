package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestProgramsOfUsersRunAsTheirOwner checks that states that set owners and modes, or copy files, do not make a program
// of ann setuid for root or another user.
func TestProgramsOfUsersRunAsTheirOwner(t *testing.T) {
	for name, c := range map[string]struct {
		sls     string
		outcome exec.Outcome
		setuid  string // files with a setuid or setgid bit after the run
	}{
		"managed": {"file.managed: [{name: /home/ann/own/x}, {replace: false}, {user: root}, {mode: '4755'}]",
			exec.Failed, "/home/ann/own/x"},
		"mode alone": {"file.managed: [{name: /home/ann/own/roots}, {replace: false}, {mode: '4755'}]", exec.Failed,
			"/home/ann/own/x"},
		"directory recurse": {"file.directory: [{name: /home/ann/own}, {user: root}, {recurse: [user]}]", exec.Succeeded, ""},
		"directory modes": {"file.directory: [{name: /home/ann/own}, {user: daemon}, {file_mode: '2755'}, {recurse: " +
			"[user, mode]}]", exec.Failed, "/home/ann/own/x"},
		"directory to root": {"file.directory: [{name: /home/ann/own}, {user: root}, {file_mode: '4755'}, {recurse: " +
			"[user, mode]}]", exec.Failed, "/home/ann/own/x"},
		"managed to root": {"file.managed: [{name: /srv/anns}, {replace: false}, {user: root}, {mode: '4755'}]", exec.Failed,
			"/home/ann/own/x"},
		"copy": {"file.copy: [{name: /srv/new}, {source: /home/ann/own/x}, {follow_unsafe: true}]",
			exec.Succeeded, "/home/ann/own/x"},
		"copy preserve": {"file.copy: [{name: /srv/new}, {source: /home/ann/own/x}, {preserve: true}]", exec.Succeeded,
			"/home/ann/own/x /srv/new"},
		"copy tree": {"file.copy: [{name: /srv/tree}, {source: /home/ann/own}, {follow_unsafe: true}]", exec.Succeeded,
			"/home/ann/own/x"},
		"ann's own": {"file.managed: [{name: /home/ann/file}, {replace: false}, {user: ann}, {mode: '4755'}]",
			exec.Succeeded, "/home/ann/file /home/ann/own/x"},
		// ann controls the directory above
		"root's content": {"file.managed: [{name: /home/ann/own/tool}, {contents: x}, {user: root}, {mode: '4755'}]",
			exec.Failed, "/home/ann/own/x"},
		"root's directory": {"file.managed: [{name: /srv/own}, {replace: false}, {mode: '4755'}]", exec.Succeeded,
			"/home/ann/own/x /srv/own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := annsHost(t)
			hosttest.Put(t, filepath.Join(root, "etc/passwd"),
				"root:x:0:0::/root:/bin/sh\nann:x:64001:64001::/home/ann:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n", 0o644)
			hosttest.Put(t, filepath.Join(root, "home/ann/own/roots"), "root's program", 0o755)
			hosttest.Put(t, filepath.Join(root, "srv/anns"), "ann's program", 0o755)
			own(t, filepath.Join(root, "srv/anns"))
			if err := os.Chmod(filepath.Join(root, "home/ann/own/x"), 0o755|fs.ModeSetuid); err != nil {
				t.Fatal(err)
			}
			r := runOn(t, root, "t: {"+c.sls+"}", false)[0]
			if r.Outcome != c.outcome || c.outcome == exec.Failed && !strings.Contains(r.Comment,
				"setuid and setgid bits are refused, since user") {
				t.Errorf("%v: %s", r.Outcome, r.Comment)
			}
			if got := strings.Join(setuid(t, root), " "); got != c.setuid {
				t.Errorf("the files with setuid or setgid bits are %q, want %q", got, c.setuid)
			}
		})
	}
}

// setuid lists the files of a root with setuid or setgid bits.
func setuid(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			all = append(all, strings.TrimPrefix(p, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOwnerAndModeApplyToTheSameFile swaps a file of ann with one of root all the time. No file may get its owner and
// its setuid bit from different calls.
func TestOwnerAndModeApplyToTheSameFile(t *testing.T) {
	root := annsHost(t)
	home := filepath.Join(root, "home/ann")
	open := func(name string) *os.File {
		hosttest.Put(t, filepath.Join(home, name), name, 0o755)
		f, err := os.Open(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	mine, roots := open("mine1"), open("roots1")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(home, "mine1"), unix.AT_FDCWD, filepath.Join(home, "roots1"),
					unix.RENAME_EXCHANGE)
			}
		}
	}()
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	mode := 0o755 | fs.ModeSetuid
	for range 500 {
		if err := errors.Join(mine.Chown(ann, ann), mine.Chmod(0o755), roots.Chown(0, 0), roots.Chmod(0o755)); err != nil {
			t.Fatal(err)
		}
		_ = h.Files.Own("/home/ann/mine1", ann, ann, &mode)
		_ = h.Files.Chmod("/home/ann/roots1", mode)
		_ = h.Files.Own("/home/ann/mine1", 0, 0, &mode)
		for _, f := range []*os.File{mine, roots} {
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Uid != ann && st.Mode&unix.S_ISUID != 0 {
				t.Fatalf("%s has mode %o and belongs to %d, %v", f.Name(), st.Mode, st.Uid, err)
			}
		}
	}
	close(stop)
	<-ended
}
