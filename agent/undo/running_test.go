package undo_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestUnitsAreRestartedAtTheEnd restarts the units that a run restarted and that were active before, after all other
// restores.
func TestUnitsAreRestartedAtTheEnd(t *testing.T) {
	const was = "it ran"
	act := func(verbs ...host.UnitVerb) func(s *scene, h *host.Host) {
		return func(s *scene, h *host.Host) {
			s.write("/etc/web.conf", "new")(h)
			for _, verb := range verbs {
				s.do(h.Units.Act(context.Background(), verb, "web", true))
			}
		}
	}
	for name, c := range map[string]struct {
		before    string
		run       func(s *scene, h *host.Host)
		since     func(s *scene)
		restored  []string
		left      string
		restarted bool
		did       string // actions on the unit
		runs      bool   // whether it is active at the end
	}{
		"restarted by the run": {before: was, run: act(host.Restart), restored: []string{"file /etc/web.conf"},
			restarted: true, did: "web restart", runs: true},
		"the run did twice": {before: was, run: act(host.Restart, host.Restart),
			restored: []string{"file /etc/web.conf"}, restarted: true, did: "web restart", runs: true},
		"not restarted by the run": {before: was, run: act(), restored: []string{"file /etc/web.conf"}, runs: true},
		"started by the run": {run: act(host.Start), restored: []string{"unit web.service", "file /etc/web.conf"},
			did: "web stop"},
		"stopped by the run": {before: was, run: act(host.Stop),
			restored: []string{"unit web.service", "file /etc/web.conf"}, did: "web start", runs: true},
		"stopped by a user since": {before: was, run: act(host.Restart),
			since: func(s *scene) { s.do(os.Remove(s.path("/run/web"))) }, restored: []string{"file /etc/web.conf"},
			left: "unit web.service (some.state of 1): it is stopped, and run 1 left it running: its program ended, or it " +
				"was started or stopped, since"},
		"no other change": {before: was, run: func(s *scene, h *host.Host) {
			s.do(h.Units.Act(context.Background(), host.Restart, "web", true))
		}, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			hosttest.Put(t, s.path("/etc/init.d/web"), "", 0o755)
			s.put("/etc/web.conf", "old")
			if c.before == was {
				s.put("/run/web", "")
			}
			s.run("1", func(h *host.Host) { c.run(s, h) })
			if c.since != nil {
				c.since(s)
			}
			s.machine.ran = nil
			p, _ := s.plan()
			if got := len(p.Restart) == 1; got != c.restarted {
				t.Errorf("the plan restarts %q", p.Restart)
			}
			did := s.restoreTwice()
			if c.left == "" {
				s.expect(did, c.restored)
			} else {
				s.expect(did, c.restored, c.left)
			}
			if got := strings.Join(s.machine.ran, "; "); got != c.did ||
				slices.Equal(did.Restarted, []string{"web.service"}) != c.restarted {
				t.Errorf("the actions are %q and the restarted units %q, want %q", got, did.Restarted, c.did)
			}
			if _, err := os.Stat(s.path("/run/web")); (err == nil) != c.runs {
				t.Errorf("the unit is active: %v, want %v", err == nil, c.runs)
			}
		})
	}
}

// TestRemovedUnitIsNotRestarted undoes a unit that the run installed, as a package does, and restarted after a change
// of its configuration.
func TestRemovedUnitIsNotRestarted(t *testing.T) {
	s := newScene(t)
	s.put("/etc/web.conf", "old")
	s.run("1", func(h *host.Host) {
		s.write("/etc/init.d/mail", "")(h)
		s.do(h.Files.Chmod("/etc/init.d/mail", 0o755))
		s.put("/run/mail", "") // the package starts it
		s.write("/etc/web.conf", "new")(h)
		s.do(h.Units.Act(context.Background(), host.Restart, "mail", true))
	})
	if p, _ := s.plan(); len(p.Restart) != 1 {
		t.Fatalf("the plan restarts %q", p.Restart)
	}
	if did := s.back(); len(did.Failed) > 0 || len(did.Restarted) > 0 || s.text("/etc/web.conf") != "old" {
		t.Errorf("the summary is %+v", did)
	}
}

// TestRestartThatFails checks that a failed restart is reported and retried by the next restore.
func TestRestartThatFails(t *testing.T) {
	s := newScene(t)
	hosttest.Put(t, s.path("/etc/init.d/web"), "", 0o755)
	s.put("/run/web", "")
	s.put("/etc/web.conf", "old")
	s.run("1", func(h *host.Host) {
		s.write("/etc/web.conf", "new")(h)
		s.do(h.Units.Act(context.Background(), host.Restart, "web", true))
	})
	s.machine.fail = "web restart"
	if did := s.back(); len(did.Failed) != 1 || did.Failed[0].Subject != "unit web.service" ||
		s.text("/etc/web.conf") != "old" {
		t.Errorf("the summary is %+v", did)
	}
	s.machine.fail, s.machine.ran = "", nil
	if did := s.restoreTwice(); !slices.Equal(did.Restarted, []string{"web.service"}) || len(did.Restored) > 0 {
		t.Errorf("the second summary is %+v", did)
	}
}

// tool has a run change the running system with one of its tools.
func (s *scene) tool(h *host.Host, kind host.Kind, name string, argv ...string) {
	s.Helper()
	_, err := h.Tool(context.Background(), host.Tool{Argv: argv, Changes: host.Subject{Kind: kind, Name: name}})
	s.do(err)
}

// TestUndoOfRunningSystem undoes changes that are not files, with the tools that states use. Afterwards the kernel's
// files have the same content as before.
func TestUndoOfRunningSystem(t *testing.T) {
	tmpfs := func(s *scene) {
		s.machine.mount([]string{"-t", "tmpfs", "-o", "rw,size=1024k", "--", "tmpfs", "/mnt"})
	}
	for name, c := range map[string]struct {
		before   func(s *scene)
		run      func(s *scene, h *host.Host)
		since    func(s *scene)
		restored string
		left     string
		did      []string
	}{
		"something is mounted": {
			run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindMount, "/mnt", "mount", "-o", "rw", "-t", "tmpfs", "tmpfs", "/mnt")
			},
			restored: "mount /mnt", did: []string{"umount -- /mnt"},
		},
		"something is unmounted": {
			before: tmpfs, run: func(s *scene, h *host.Host) { s.tool(h, host.KindMount, "/mnt", "umount", "/mnt") },
			restored: "mount /mnt", did: []string{"mount -t tmpfs -o rw,size=1024k -- tmpfs /mnt"},
		},
		"mounted with other options": {
			before: tmpfs, run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindMount, "/mnt", "mount", "-o", "remount,rw,size=2048k", "-t", "tmpfs", "tmpfs", "/mnt")
			},
			restored: "mount /mnt", did: []string{"mount -t tmpfs -o remount,rw,size=1024k -- tmpfs /mnt"},
		},
		"mounted from another device": {
			before: tmpfs, run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindMount, "/mnt", "umount", "/mnt")
				s.tool(h, host.KindMount, "/mnt", "mount", "-o", "rw", "-t", "ext4", "/dev/sdb1", "/mnt")
			},
			restored: "mount /mnt", did: []string{"umount -- /mnt", "mount -t tmpfs -o rw,size=1024k -- tmpfs /mnt"},
		},
		"a directory is no longer shown in a second place": {
			before: func(s *scene) {
				s.machine.add("/proc/self/mounts", "/dev/root / ext4 rw 0 0")
				s.machine.add("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/root rw")
				s.machine.mount([]string{"-o", "bind", "--", "/srv/data", "/mnt"})
			},
			run:      func(s *scene, h *host.Host) { s.tool(h, host.KindMount, "/mnt", "umount", "/mnt") },
			restored: "mount /mnt", did: []string{"mount -t none -o bind,rw -- /srv/data /mnt"},
		},
		"a directory that is shown nowhere else": {
			before: func(s *scene) { s.machine.mount([]string{"-o", "bind", "--", "/srv/data", "/mnt"}) },
			run:    func(s *scene, h *host.Host) { s.tool(h, host.KindMount, "/mnt", "umount", "/mnt") },
			left:   "mount /mnt (some.state of 1): which directory was mounted there is not to be found",
		},
		"another filesystem was mounted since": {
			run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindMount, "/mnt", "mount", "-o", "rw", "-t", "tmpfs", "tmpfs", "/mnt")
			},
			since: func(s *scene) {
				s.machine.mount([]string{"-t", "ext4", "-o", "rw", "--", "/dev/sdb1", "/mnt"})
			},
			left: "mount /mnt (some.state of 1): it was changed since run 1 left it",
		},
		"the place is a link": {
			before: func(s *scene) { s.do(os.Symlink("/mnt", s.path("/data"))) },
			run: func(s *scene, h *host.Host) {
				s.named(host.KindMount, "/data")
				tmpfs(s)
			},
			restored: "mount /data", did: []string{"umount -- /mnt"},
		},
		"something is swapped to": {
			run:      func(s *scene, h *host.Host) { s.tool(h, host.KindMount, "/swapfile", "swapon", "/swapfile") },
			restored: "mount /swapfile", did: []string{"swapoff -- /swapfile"},
		},
		"nothing is swapped to any more": {
			before:   func(s *scene) { s.machine.add("/proc/swaps", "/swapfile file 1024 0 -2") },
			run:      func(s *scene, h *host.Host) { s.tool(h, host.KindMount, "/swapfile", "swapoff", "/swapfile") },
			restored: "mount /swapfile", did: []string{"swapon -- /swapfile"},
		},
		"a module is loaded": {
			run:      func(s *scene, h *host.Host) { s.tool(h, host.KindKernelModule, "ip_tables", "modprobe", "ip_tables") },
			restored: "kernel module ip_tables", did: []string{"modprobe -r -- ip_tables"},
		},
		"a module is removed": {
			before: func(s *scene) { s.machine.add("/proc/modules", "ip_tables 1 0") },
			run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindKernelModule, "ip-tables", "modprobe", "-r", "ip_tables")
			},
			restored: "kernel module ip-tables", did: []string{"modprobe -- ip-tables"},
		},
		"a setting": {
			before: func(s *scene) { s.put("/proc/sys/net/ipv4/ip_forward", "0\n") },
			run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindSysctl, "net.ipv4.ip_forward", "sysctl", "-w", "net.ipv4.ip_forward=1")
			},
			restored: "sysctl net.ipv4.ip_forward", did: []string{"sysctl -q -w net.ipv4.ip_forward=0"},
		},
		"a setting that a user changed since": {
			before: func(s *scene) { s.put("/proc/sys/net/ipv4/ip_forward", "0\n") },
			run: func(s *scene, h *host.Host) {
				s.tool(h, host.KindSysctl, "net.ipv4.ip_forward", "sysctl", "-w", "net.ipv4.ip_forward=1")
			},
			since: func(s *scene) { s.put("/proc/sys/net/ipv4/ip_forward", "2\n") },
			left:  "sysctl net.ipv4.ip_forward (some.state of 1): it was changed since run 1 left it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.before != nil {
				c.before(s)
			}
			before := s.kernel()
			s.run("1", func(h *host.Host) { c.run(s, h) })
			if c.since != nil {
				c.since(s)
			}
			s.machine.ran = nil
			did := s.restoreTwice()
			if c.left != "" {
				s.expect(did, nil, c.left)
				if len(s.machine.ran) > 0 {
					t.Errorf("the restore still ran %q", s.machine.ran)
				}
				return
			}
			s.expect(did, []string{c.restored})
			if !slices.Equal(s.machine.ran, c.did) {
				t.Errorf("the restore ran %q, want %q", s.machine.ran, c.did)
			}
			if now := strings.ReplaceAll(s.kernel(), "ip-tables", "ip_tables"); now != before {
				t.Errorf("the kernel files are\n%swant\n%s", now, before)
			}
		})
	}
}

// kernel returns the content of the imitated kernel files.
func (s *scene) kernel() string {
	return s.text("/proc/self/mounts") + s.text("/proc/self/mountinfo") + s.text("/proc/swaps") + s.text("/proc/modules") +
		s.text("/proc/sys/net/ipv4/ip_forward")
}

// TestRestoreIsInReverseOrder checks that changes of all kinds are undone in the reverse order.
func TestRestoreIsInReverseOrder(t *testing.T) {
	s := newScene(t)
	s.run("1", func(h *host.Host) {
		s.do(h.Files.Mkdir("/mnt", 0o755))
		s.tool(h, host.KindMount, "/mnt", "mount", "-o", "rw", "-t", "tmpfs", "tmpfs", "/mnt")
		s.write("/etc/modules-load.d/x.conf", "x\n")(h)
	})
	s.run("2", func(h *host.Host) {
		s.tool(h, host.KindKernelModule, "x", "modprobe", "x")
		s.tool(h, host.KindMount, "/swapfile", "swapon", "/swapfile")
	})
	s.expect(s.restoreTwice(), []string{"mount /swapfile", "kernel module x", "file /etc/modules-load.d/x.conf",
		"file /etc/modules-load.d", "mount /mnt", "file /mnt"})
}
