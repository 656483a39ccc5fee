package undo_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// shown returns the output of `changes` for run 1, and the differences of a dry run of the restore.
func (s *scene) shown() (changes, back string) {
	s.Helper()
	chapters, err := s.journal.Chapters()
	s.do(err)
	var b strings.Builder
	for _, d := range undo.Changes(chapters, "1") {
		b.WriteString(d.String())
	}
	changes = b.String()
	b.Reset()
	p, h := s.plan()
	for _, d := range p.Differences(h) {
		b.WriteString(d.String())
	}
	return changes, b.String()
}

// TestDifferences compares the differences of each kind of subject for a run and for its restore.
func TestDifferences(t *testing.T) {
	owner := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	for name, c := range map[string]struct {
		before        func(s *scene)
		run           func(s *scene, h *host.Host)
		changes, back string
	}{
		"a text": {
			func(s *scene) { s.put("/etc/f", "one\ntwo\n") }, func(s *scene, h *host.Host) {
				s.write("/etc/f", "one\nthree\n")(h)
			},
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ -1,2 +1,2 @@\n one\n-three\n+two\n",
		},
		"the last line does not end": {
			func(s *scene) { s.put("/etc/f", "one") }, func(s *scene, h *host.Host) { s.write("/etc/f", "one\n")(h) },
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+one\n",
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ -1 +1 @@\n-one\n+one\n\\ No newline at end of file\n",
		},
		"a mode": {
			func(s *scene) { s.put("/etc/f", "x\n"); s.do(os.Chmod(s.path("/etc/f"), 0o755|os.ModeSetuid)) },
			func(s *scene, h *host.Host) { s.do(h.Files.Chmod("/etc/f", 0o644)) },
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n-mode 4755\n+mode 0644\n",
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n-mode 0644\n+mode 4755\n",
		},
		"no text": {
			func(s *scene) { s.put("/etc/f", "\x00\x01") }, func(s *scene, h *host.Host) {
				s.write("/etc/f", "\x00\x01\x02")(h)
			},
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ content @@ 2 B, now 3 B\n",
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n@@ content @@ 3 B, now 2 B\n",
		},
		"names with line feeds": {
			func(*scene) {}, func(s *scene, h *host.Host) { s.do(h.Files.Symlink("g\n+forged", "/etc/f\n# forged")) },
			"# file /etc/f\\x0a# forged (some.state of 1)\n--- /dev/null\n+++ /etc/f\\x0a# forged\n+link to g\\x0a+forged\n",
			"# file /etc/f\\x0a# forged (some.state of 1)\n--- /etc/f\\x0a# forged\n+++ /dev/null\n-link to g\\x0a+forged\n",
		},
		"a link for a file": {
			func(s *scene) { s.put("/etc/f", "x\n") }, func(s *scene, h *host.Host) {
				s.do(h.Files.Remove("/etc/f"))
				s.do(h.Files.Symlink("g", "/etc/f"))
			},
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n+link to g\n@@ -1 +0,0 @@\n-x\n",
			"# file /etc/f (some.state of 1)\n--- /etc/f\n+++ /etc/f\n-link to g\n@@ -0,0 +1 @@\n+x\n",
		},
		"a directory": {
			nil, func(s *scene, h *host.Host) { s.do(h.Files.Mkdir("/etc/d", 0o750)) },
			"# file /etc/d (some.state of 1)\n--- /dev/null\n+++ /etc/d\n+directory 0750 " + owner + "\n",
			"# file /etc/d (some.state of 1)\n--- /etc/d\n+++ /dev/null\n-directory 0750 " + owner + "\n",
		},
		"a setting": {
			func(s *scene) { s.put("/proc/sys/net/ipv4/ip_forward", "0\n") }, func(s *scene, _ *host.Host) {
				s.named(host.KindSysctl, "net.ipv4.ip_forward")
				s.put("/proc/sys/net/ipv4/ip_forward", "1\n")
			},
			"# sysctl net.ipv4.ip_forward (some.state of 1)\n-value: 0\n+value: 1\n",
			"# sysctl net.ipv4.ip_forward (some.state of 1)\n-value: 1\n+value: 0\n",
		},
		"a command": {
			nil, func(s *scene, _ *host.Host) { s.named(host.KindCommand, "make") },
			"# command make (some.state of 1): what a command does cannot be undone\n", "",
		},
		"no change at the end": {
			func(s *scene) { s.put("/etc/f", "x\n") }, func(s *scene, h *host.Host) {
				s.write("/etc/f", "y\n")(h)
				s.write("/etc/f", "x\n")(h)
			},
			"", "# file /etc/f (some.state of 1)\n", // only the modification time is restored
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.before != nil {
				c.before(s)
			}
			s.run("1", func(h *host.Host) { c.run(s, h) })
			changes, back := s.shown()
			if changes != c.changes {
				t.Errorf("changes shows\n%swant\n%s", changes, c.changes)
			}
			if back != c.back {
				t.Errorf("the restore would be\n%swant\n%s", back, c.back)
			}
		})
	}
}

// TestDifferencesOmitSecrets searches the differences for secrets, before and after the restore.
func TestDifferencesOmitSecrets(t *testing.T) {
	const secret, other = "hunter2", "sw0rdfish"
	only := func(mode os.FileMode) func(s *scene) {
		return func(s *scene) { s.put("/etc/f", other); s.do(os.Chmod(s.path("/etc/f"), mode)) }
	}
	for name, c := range map[string]struct {
		before func(s *scene)
		run    func(s *scene, h *host.Host)
		cut    bool
		shown  string // the expected difference
	}{
		"a password in shadow": {
			run: func(s *scene, _ *host.Host) {
				s.named(host.KindUser, "alice")
				hosttest.Put(s, s.path("/etc/shadow"), strings.Replace(s.text("/etc/shadow"), "$6$abc$def", secret, 1), 0o600)
			},
			shown: "@@ a line differs @@ not shown: accounts have secrets",
		},
		"a new account": {
			run: func(s *scene, _ *host.Host) {
				s.named(host.KindUser, "bob")
				s.put("/etc/passwd", s.text("/etc/passwd")+"bob:"+secret+":2000:2000::/home/bob:/bin/sh\n")
			},
			shown: "a line is",
		},
		"a file of its owner's": {
			before: only(0o600), run: func(s *scene, h *host.Host) { s.write("/etc/f", secret)(h) },
			shown: "not shown: it is not readable by everyone",
		},
		"a file that becomes its owner's": {
			before: only(0o644), run: func(s *scene, h *host.Host) {
				s.do(h.Files.Chmod("/etc/f", 0o600))
				s.write("/etc/f", secret)(h)
			},
			shown: "not shown: it is not readable by everyone",
		},
		"a file that was its owner's": {
			before: only(0o600), run: func(s *scene, h *host.Host) {
				s.write("/etc/f", secret)(h)
				s.do(h.Files.Chmod("/etc/f", 0o644))
			},
			shown: "not shown: it is not readable by everyone",
		},
		"a file in a directory of its owner's": {
			before: func(s *scene) {
				s.put("/etc/private/f", other)
				s.do(os.Chmod(s.path("/etc/private/f"), 0o644))
				s.do(os.Chmod(s.path("/etc/private"), 0o700))
			},
			run:   func(s *scene, h *host.Host) { s.write("/etc/private/f", secret+"\n"+secret)(h) },
			shown: "not shown: it is not readable by everyone",
		},
		"a value that the run hides": {
			before: only(0o644), run: func(s *scene, h *host.Host) { s.write("/etc/f", "password: "+secret)(h) },
			shown: "not shown: it is not readable by everyone",
		},
		"a setting that the run hides": {
			run: func(s *scene, _ *host.Host) {
				s.named(host.KindSysctl, "net.ipv4.ip_forward")
				s.put("/proc/sys/net/ipv4/ip_forward", secret+"\n")
			},
			shown: "value differs, and is not shown",
		},
		"a file that the cut run made its owner's": {
			before: func(s *scene) { s.put("/etc/f", "nothing to hide\n") }, cut: true,
			run:   func(s *scene, h *host.Host) { s.do(h.Files.Chmod("/etc/f", 0o600)); s.write("/etc/f", secret)(h) },
			shown: "not shown: it is not readable by everyone",
		},
		"a value that the cut run hides": {
			before: func(s *scene) { s.put("/etc/f", "nothing to hide\n") }, cut: true,
			run:   func(s *scene, h *host.Host) { s.write("/etc/f", secret)(h) },
			shown: "not shown: it is not readable by everyone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.before != nil {
				c.before(s)
			}
			work := func(h *host.Host) { c.run(s, h) }
			if c.cut {
				s.run("1", work, "cut")
			} else {
				s.run("1", work)
			}
			changes, back := s.shown()
			did := s.back()
			after, _ := s.shown()
			for _, text := range []string{changes, back, after} {
				if strings.Contains(text, secret) || strings.Contains(text, other) || strings.Contains(text, "$6$") {
					t.Errorf("changes shows\n%s", text)
				}
			}
			if !strings.Contains(back, c.shown) || len(did.Restored) != 1 {
				t.Errorf("the restore would be\n%s\nand was %+v", back, did)
			}
		})
	}
}

// TestUndoneChangesNameTheRun checks that the changes of a run name the later run that undid them.
func TestUndoneChangesNameTheRun(t *testing.T) {
	s := newScene(t)
	s.put("/etc/f", "old\n")
	s.run("1", s.write("/etc/f", "new\n"))
	s.back()
	if changes, _ := s.shown(); !strings.HasPrefix(changes,
		"# file /etc/f (some.state of 1): undone by run back\n--- /etc/f\n") {
		t.Errorf("changes shows\n%s", changes)
	}
}

// TestExtendedAttributesAreInDiff compares extended attributes. It needs a filesystem that supports them.
func TestExtendedAttributesAreInDiff(t *testing.T) {
	s := newScene(t)
	s.put("/etc/f", "x\n")
	if err := unix.Setxattr(s.path("/etc/f"), "user.note", []byte("old"), 0); err != nil {
		t.Skipf("this filesystem has no extended attributes: %v", err)
	}
	s.run("1", func(h *host.Host) {
		s.do(h.Files.SetAttributes("/etc/f", map[string][]byte{"user.note": []byte("new")}))
	})
	if changes, _ := s.shown(); !strings.Contains(changes, "-attribute user.note b2xk\n+attribute user.note bmV3\n") {
		t.Errorf("changes shows\n%s", changes)
	}
	s.expect(s.restoreTwice(), []string{"file /etc/f"})
}
