package attack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// venv makes a virtual environment whose pip writes down its user.
func (w *world) venv(rel string, uid int) {
	w.Helper()
	for name, text := range map[string]string{
		"pyvenv.cfg": "home = /usr/bin\n",
		"bin/pip": "#!/bin/sh\nid -u >/home/ann/pwned-$(id -u)\n" +
			"case \"$*\" in *list*) echo '[]';; *version*) echo 'pip 24.0 from /x (python 3.11)';; esac\n",
	} {
		if uid == 0 {
			text = strings.Replace(text, "id -u >/home/ann/pwned-$(id -u)\n", "", 1)
		}
		file := filepath.Join(w.dir, rel, name)
		w.must(errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755),
			os.Chown(filepath.Dir(file), uid, uid), os.Chown(file, uid, uid)))
	}
	w.must(errors.Join(os.Symlink("pip", filepath.Join(w.dir, rel, "bin/pip3")),
		os.Symlink("pip", filepath.Join(w.dir, rel, "bin/python")), os.Chown(filepath.Join(w.dir, rel), uid, uid)))
}

// TestExchangedVirtualEnvironments has ann exchange the environment, its bin directory, or the program, after
// the agent has checked who owns it and before the agent starts pip there.
func TestExchangedVirtualEnvironments(t *testing.T) {
	s := newStates(t, "entered")
	for name, c := range map[string]struct {
		env  string // in the state
		lay  func()
		a, b string // the paths that ann exchanges
	}{
		"nothing":        {env: "/home/ann/hers"},
		"an environment": {"/home/ann/v", func() { s.venv("home/ann/v", 0) }, "home/ann/v", "home/ann/hers"},
		"a link to root's": {"/home/ann/v", func() { s.must(os.Symlink("/srv/venv", s.dir+"/home/ann/v")) }, "home/ann/v",
			"home/ann/hers"},
		"a link on the way": {"/home/ann/way/venv",
			func() { s.venv("home/ann/own/venv", ann); s.must(os.Symlink("/srv", s.dir+"/home/ann/way")) }, "home/ann/way",
			"home/ann/own"},
		"the bin directory": {"/home/ann/v",
			func() { s.venv("home/ann/v", 0); s.must(os.Chown(s.dir+"/home/ann/v", ann, ann)) }, "home/ann/v/bin",
			"home/ann/hers/bin"},
		"a link for bin": {"/home/ann/hers", func() { s.must(os.Symlink("/srv/venv/bin", s.dir+"/home/ann/bin")) },
			"home/ann/hers/bin", "home/ann/bin"},
		"the program": {"/home/ann/v",
			func() { s.venv("home/ann/v", 0); s.must(os.Chown(s.dir+"/home/ann/v/bin", ann, ann)) }, "home/ann/v/bin/pip",
			"home/ann/hers/bin/pip"},
		"the configuration": {"/home/ann/v",
			func() { s.venv("home/ann/v", 0); s.must(os.Chown(s.dir+"/home/ann/v", ann, ann)) }, "home/ann/v/pyvenv.cfg",
			"home/ann/hers/pyvenv.cfg"},
		"in a shared place": {"/srv/shared/v", func() {
			s.venv("srv/shared/v", 0)
			s.venv("srv/shared/w", ann)
			s.must(os.Chmod(s.dir+"/srv/shared", 0o777))
		}, "srv/shared/v", "srv/shared/w"},
		"bin that others own": {"/srv/app/v", func() { s.venv("srv/app/v", 0); s.must(os.Chmod(s.dir+"/srv/app/v", 0o777)) },
			"srv/app/v/bin", "home/ann/hers/bin"},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			for _, dir := range []string{"srv/venv", "srv/shared", "srv/app"} {
				s.must(os.RemoveAll(filepath.Join(s.dir, dir)))
			}
			s.begin()
			s.venv("srv/venv", 0)
			s.venv("home/ann/hers", ann)
			s.must(os.Chown(s.dir+"/home/ann", ann, ann))
			stop, stopped := make(chan bool), make(chan bool)
			if c.lay != nil {
				c.lay()
			}
			go func() {
				defer close(stopped)
				for c.a != "" {
					select {
					case <-stop:
						return
					default:
						_ = exchange(filepath.Join(s.dir, c.a), filepath.Join(s.dir, c.b))
					}
				}
			}()
			var got outcome
			for range tries {
				got = s.applied("x: {pip.installed: [{bin_env: " + c.env + "}]}")
				for _, f := range s.breaks(got) {
					if !strings.HasSuffix(f, " belongs to ann") { // a file that ann put into a world-writable directory
						t.Errorf("%s\n%s", f, got.out)
					}
				}
			}
			close(stop)
			<-stopped
			if _, err := os.Stat(s.dir + "/home/ann/pwned-64001"); err != nil && name == "nothing" {
				t.Errorf("pip of ann's did not run as ann: %v\n%s", err, got.out)
			}
		})
	}
}
