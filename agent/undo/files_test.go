package undo_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestRestoreOfFiles restores a file that a run changed, and that another user may have changed since.
func TestRestoreOfFiles(t *testing.T) {
	const f = "/etc/f"
	old := func(s *scene) { s.put(f, "old") }
	for name, c := range map[string]struct {
		before   func(s *scene)
		run      func(s *scene, h *host.Host)
		cut      bool
		since    func(s *scene)
		restored []string
		left     string
		want     string // content of the file
	}{
		"unchanged since":      {before: old, restored: []string{"file /etc/f"}, want: "old"},
		"did not exist before": {restored: []string{"file /etc/f"}, want: "(none)"},
		"removed by the run": {
			before: old, run: func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)) },
			restored: []string{"file /etc/f"}, want: "old",
		},
		"written since": {
			before: old, since: func(s *scene) { s.put(f, "mine") },
			left: "file /etc/f (some.state of 1): it was changed since run 1 left it", want: "mine",
		},
		"mode changed since": {
			before: old, since: func(s *scene) { s.do(os.Chmod(s.path(f), 0o600)) },
			left: "file /etc/f (some.state of 1): it was changed since run 1 left it", want: "new",
		},
		"removed since": {
			before: old, since: func(s *scene) { s.do(os.Remove(s.path(f))) },
			left: "it was changed since run 1 left it", want: "(none)",
		},
		"replaced by a directory": {
			before: old, since: func(s *scene) { s.do(os.Remove(s.path(f))); s.do(os.Mkdir(s.path(f), 0o755)) },
			left: "it was changed since run 1 left it", want: "(none)",
		},
		"replaced by a link": {
			before: old, since: func(s *scene) { s.do(os.Remove(s.path(f))); s.do(os.Symlink("elsewhere", s.path(f))) },
			left: "it was changed since run 1 left it", want: "(none)",
		},
		"removed by the run, created since": {
			before: old, run: func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)) }, since: func(s *scene) {
				s.put(f, "mine")
			},
			left: "it was changed since run 1 left it", want: "mine",
		},
		"already restored":                  {before: old, since: func(s *scene) { s.put(f, "old") }, want: "old"},
		"created by the run, removed since": {since: func(s *scene) { s.do(os.Remove(s.path(f))) }, want: "(none)"},
		"run interrupted, no after-image": {
			before: old, cut: true, since: func(s *scene) { s.put(f, "half") },
			restored: []string{"file /etc/f"}, want: "old",
		},
		"larger than the limit": {
			before: func(s *scene) { s.put(f, strings.Repeat("x", 1<<10+1)) },
			left:   "its content was not kept: it is larger than 1.0 KiB", want: "new",
		},
		"a pipe before": {
			before: func(s *scene) { s.do(unix.Mkfifo(s.path(f), 0o644)) },
			run:    func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)); s.do(h.WriteText(f, "new")) },
			left:   "pipes, sockets and devices are not recreated", want: "new",
		},
		"the file made way for a directory": {
			before: old, run: func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)); s.do(h.Files.Mkdir(f, 0o700)) },
			restored: []string{"file /etc/f"}, want: "old",
		},
		"the file made way for a directory that is in use": {
			before: old, run: func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)); s.do(h.Files.Mkdir(f, 0o700)) },
			since: func(s *scene) { s.put(f+"/mine", "x") },
			left:  "there are files in it that no state made", want: "(none)",
		},
		"the link made way for a file": {
			before:   func(s *scene) { s.put("/etc/target", "old"); s.do(os.Symlink("target", s.path(f))) },
			run:      func(s *scene, h *host.Host) { s.do(h.Files.Remove(f)); s.do(h.WriteText(f, "new")) },
			restored: []string{"file /etc/f"}, want: "old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.before != nil {
				c.before(s)
			}
			work := s.write(f, "new")
			if c.run != nil {
				work = func(h *host.Host) { c.run(s, h) }
			}
			if c.cut {
				s.run("1", work, "cut")
			} else {
				s.run("1", work)
			}
			if c.since != nil {
				c.since(s)
			}
			did := s.restoreTwice()
			if c.left == "" {
				s.expect(did, c.restored)
			} else {
				s.expect(did, c.restored, c.left)
			}
			if got := s.text(f); got != c.want {
				t.Errorf("the file has %q, want %q", got, c.want)
			}
		})
	}
}

// TestModeAndOwnerAreRestoredInPlace restores the mode and owner of a file without replacing it: a program that has it
// open keeps the same file, and the journal needs no content. A file that is given back to root is replaced by a new
// one with the same content, since the other user may have it open. Only root can change the owner of a file.
func TestModeAndOwnerAreRestoredInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		mode  os.FileMode
		given bool // to another user
	}{
		"a small one": {10, 0o640, true}, "one larger than the limit": {1<<10 + 1, 0o640, true},
		"one with a bit of its group": {10, 0o640 | os.ModeSetgid, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.put("/srv/data", strings.Repeat("x", c.size))
			s.do(os.Chmod(s.path("/srv/data"), c.mode))
			before, err := os.Stat(s.path("/srv/data"))
			s.do(err)
			s.run("1", func(h *host.Host) {
				s.do(h.Files.Chmod("/srv/data", 0o600))
				if c.given && os.Geteuid() == 0 {
					s.do(h.Files.Chown("/srv/data", 1, 1))
				}
			})
			s.expect(s.restoreTwice(), []string{"file /srv/data"})
			after, err := os.Stat(s.path("/srv/data"))
			s.do(err)
			back := c.given && os.Geteuid() == 0
			if os.SameFile(before, after) == back || after.Size() != before.Size() || after.Mode() != before.Mode() ||
				owner(after) != owner(before) {
				t.Errorf("it is %v now, and was %v", after, before)
			}
		})
	}
}

// TestUndoOfSeveralRuns undoes several runs at once, up to the newest change that another user made.
func TestUndoOfSeveralRuns(t *testing.T) {
	s := newScene(t)
	s.put("/etc/f", "first")
	s.put("/etc/g", "first")
	s.run("1", func(h *host.Host) { s.write("/etc/f", "second")(h); s.write("/etc/g", "second")(h) })
	s.put("/etc/g", "a person's")
	s.run("2", func(h *host.Host) { s.write("/etc/f", "third")(h); s.write("/etc/g", "third")(h) })
	s.expect(s.restoreTwice(), []string{"file /etc/g", "file /etc/f"},
		"file /etc/g (some.state of 1): it was changed since run 1 left it")
	if f, g := s.text("/etc/f"), s.text("/etc/g"); f != "first" || g != "a person's" {
		t.Errorf("the files hold %q and %q", f, g)
	}
}

// TestOnlyEmptyDirectoriesAreRemoved removes the directories of a run, except one with another user's file.
func TestOnlyEmptyDirectoriesAreRemoved(t *testing.T) {
	s := newScene(t)
	s.run("1", func(h *host.Host) {
		s.do(h.MkdirAll("/srv/app/a/b"))
		s.write("/srv/app/a/b/f", "x")(h)
		s.do(h.MkdirAll("/srv/app/mine/deep"))
	})
	s.put("/srv/app/mine/deep/file", "a person's")
	did := s.restoreTwice()
	s.expect(did, []string{"file /srv/app/a/b/f", "file /srv/app/a/b", "file /srv/app/a"},
		"file /srv/app/mine/deep (some.state of 1): there are files in it", "file /srv/app/mine (", "file /srv/app (",
		"file /srv (")
	if s.text("/srv/app/mine/deep/file") != "a person's" {
		t.Error("the restore removed another user's file")
	}
	if _, err := os.Lstat(s.path("/srv/app/a")); err == nil {
		t.Error("a directory that the run made still exists")
	}
}

// TestDirectoriesAreRestoredBeforeTheirContent restores a tree that a run removed from the bottom up, with the
// modes of its directories.
func TestDirectoriesAreRestoredBeforeTheirContent(t *testing.T) {
	s := newScene(t)
	s.put("/srv/app/a/b/f", "x")
	s.do(os.Chmod(s.path("/srv/app/a"), os.ModeSetgid|0o750))
	s.run("1", func(h *host.Host) { s.do(h.Files.RemoveAll("/srv/app")) })
	did := s.restoreTwice()
	if len(did.Restored) != 4 || len(did.Left)+len(did.Failed) > 0 {
		t.Errorf("the summary is %+v", did)
	}
	if info, err := os.Stat(s.path("/srv/app/a")); err != nil || info.Mode() != os.ModeDir|os.ModeSetgid|0o750 ||
		s.text("/srv/app/a/b/f") != "x" {
		t.Errorf("the restored directories are %v, %v, and the file is %q", info, err, s.text("/srv/app/a/b/f"))
	}
}

// TestFilesWithoutDirectoryAreNotRestored restores no file in a directory that was removed or replaced after the run.
func TestFilesWithoutDirectoryAreNotRestored(t *testing.T) {
	for name, since := range map[string]func(s *scene){
		"directory removed":  func(s *scene) { s.do(os.RemoveAll(s.path("/srv"))) },
		"replaced by a file": func(s *scene) { s.do(os.RemoveAll(s.path("/srv"))); s.put("/srv", "mine") },
		"replaced by a dangling link": func(s *scene) {
			s.do(os.RemoveAll(s.path("/srv")))
			s.do(os.Symlink("nowhere", s.path("/srv")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.put("/srv/app/a/f", "x")
			s.run("1", func(h *host.Host) { s.do(h.Files.RemoveAll("/srv/app")) })
			since(s)
			s.expect(s.restoreTwice(), nil, "file /srv/app (some.state of 1): there is no directory for it any more",
				"file /srv/app/a (", "file /srv/app/a/f (")
		})
	}
}

// TestAccountsAreRestoredLineByLine restores the lines of a user, except one that was changed after the run.
func TestAccountsAreRestoredLineByLine(t *testing.T) {
	s := newScene(t)
	passwd, shadow := s.text("/etc/passwd"), s.text("/etc/shadow")
	s.run("1", func(*host.Host) {
		s.named(host.KindUser, "alice")
		hosttest.Put(s, s.path("/etc/passwd"), strings.Replace(passwd, "/bin/sh", "/bin/zsh", 1), 0o644)
		hosttest.Put(s, s.path("/etc/shadow"), strings.Replace(shadow, "$6$abc$def", "$6$abc$new", 1), 0o600)
	})
	hosttest.Put(s, s.path("/etc/shadow"), strings.Replace(shadow, "$6$abc$def", "$6$abc$mine", 1), 0o600)
	s.expect(s.restoreTwice(), []string{"user alice"},
		"user alice in /etc/shadow (some.state of 1): it was changed since run 1 left it")
	if s.text("/etc/passwd") != passwd || !strings.Contains(s.text("/etc/shadow"), "alice:$6$abc$mine:") {
		t.Errorf("the files read\n%s\n%s", s.text("/etc/passwd"), s.text("/etc/shadow"))
	}
}

// TestCommandsAreReported checks that the summary lists commands, which cannot be undone.
func TestCommandsAreReported(t *testing.T) {
	s := newScene(t)
	s.run("1", func(*host.Host) { s.named(host.KindCommand, "make") })
	s.expect(s.restoreTwice(), nil, "command make (some.state of 1): what a command does cannot be undone")
}

// TestFailedRestoresAreRetried checks that a second restore retries only what failed in the first.
func TestFailedRestoresAreRetried(t *testing.T) {
	s := newScene(t)
	s.put("/etc/f", "old")
	s.put("/proc/sys/net/ipv4/ip_forward", "0\n")
	s.run("1", func(h *host.Host) {
		s.write("/etc/f", "new")(h)
		_, err := h.Tool(t.Context(), host.Tool{Argv: []string{"sysctl", "-w", "net.ipv4.ip_forward=1"},
			Changes: host.Subject{Kind: host.KindSysctl, Name: "net.ipv4.ip_forward"}})
		s.do(err)
	})
	s.machine.fail = "sysctl"
	did := s.back()
	if len(did.Failed) != 1 || !strings.Contains(did.Failed[0].String(), "sysctl net.ipv4.ip_forward (some.state of 1)") ||
		!strings.Contains(did.Failed[0].Why, "it does not want to") {
		t.Errorf("failed: %q", did.Failed)
	}
	if s.text("/etc/f") != "old" || len(did.Restored) != 1 {
		t.Errorf("restored are %q, and the file has %q", did.Restored, s.text("/etc/f"))
	}
	s.machine.fail = ""
	s.expect(s.restoreTwice(), []string{"sysctl net.ipv4.ip_forward"})
	if got := s.text("/proc/sys/net/ipv4/ip_forward"); got != "0\n" {
		t.Errorf("the setting is %q", got)
	}
}

// TestEmptyPlan checks the plan without records.
func TestEmptyPlan(t *testing.T) {
	s := newScene(t)
	p, err := undo.NewPlan(t.Context(), s.host(nil), nil, nil)
	if err != nil || !p.Done() || !p.Summary().Empty() {
		t.Errorf("the plan is %+v, %v", p, err)
	}
}

func owner(info os.FileInfo) [2]uint32 {
	at := info.Sys().(*syscall.Stat_t)
	return [2]uint32{at.Uid, at.Gid}
}
