package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// bob is a user who runs no unit of a release.
const bob = 4711

// otherProcess starts a process of bob's that listens at an address.
func (u *fakeUnits) otherProcess(address string) {
	u.alone = map[int]processes.Process{812: {Program: "/usr/bin/python3", Directory: "/", User: bob,
		Cgroup: "/user.slice/user-4711.slice/session-1.scope"}}
	u.sockets = []processes.Socket{{Local: netip.MustParseAddrPort(address), Listens: true, User: bob,
		Holders: []int{812}}}
}

// probeRecipe returns a corpus.yaml with a probe and more lines.
func probeRecipe(probe, more string) artifacttest.Files {
	return artifacttest.Files{recipe.Name: more + "health:\n  interval: 1ms\n  retries: 1\n  probes:\n  - " + probe + "\n"}
}

// listening starts a server that answers every request.
func listening(t *testing.T) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// postponed checks that a deploy failed with an error of the host, and that the error names the process that has the
// port.
func (l *lab) postponed(r *report.Report, err error, text string) {
	l.t.Helper()
	if exit.Code(err) != exit.RolledBack || !strings.Contains(err.Error(), text) {
		l.t.Errorf("exit code %d, %v, want %q", exit.Code(err), err, text)
	}
	if r.Fault == nil || r.Fault.Of != report.FaultOfHost || len(l.quarantined()) != 0 {
		l.t.Errorf("the fault is %+v, the quarantine has %v", r.Fault, l.inQuarantine())
	}
	if s := mustStatus(l.t, l); s.Postponed == nil || !strings.Contains(s.Postponed.Reason, text) {
		l.t.Errorf("the deploy waits: %+v", s.Postponed)
	}
}

// TestProbeAnsweredByForeignProcessIsAHostError checks that such an answer does not count as healthy, and that the
// release is not quarantined.
func TestProbeAnsweredByForeignProcessIsAHostError(t *testing.T) {
	artifacttest.Long(t)
	address := listening(t)
	text := "process 812 (/usr/bin/python3) of user 4711 listens on " + address + " and belongs to no unit of the release"
	for name, probe := range map[string]string{"http": "http: http://" + address + "/", "tcp": "tcp: " + address} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.ProbeAnyRoot = true
			u.otherProcess(address)
			l.app("2", probeRecipe(probe, ""))
			r, err := l.deploy()
			l.postponed(r, err, text)
			u.runs(t, "app.service", "1")

			u.sockets[0].Holders = nil // its socket belongs to a queue now
			l.app("3", probeRecipe(probe, ""))
			r, err = l.deploy()
			l.postponed(r, err, "a socket of user 4711, which no process has open, listens on "+address)

			u.sockets[0].Holders = []int{u.all["app.service"].MainPID + 1} // the next process of the unit
			l.app("4", probeRecipe(probe, ""))
			l.expect(exit.OK)
		})
	}
}

// TestMainProcessIsRecognizedInAnyCgroup checks a kernel whose names of control groups differ from those of the init
// system.
func TestMainProcessIsRecognizedInAnyCgroup(t *testing.T) {
	address := listening(t)
	l, u := runningUnits(t, "1", "app.service")
	l.ProbeAnyRoot = true
	s := u.all["app.service"]
	s.Cgroup, s.user = "", bob
	u.sockets = []processes.Socket{{Local: netip.MustParseAddrPort(address), Listens: true, User: bob,
		Holders: []int{s.MainPID + 1}}}
	l.app("2", probeRecipe("tcp: "+address, ""))
	l.expect(exit.OK)
}

// TestProbeAnswersOfOtherUnitsCount checks a probe that names the unit, and a socket that root made.
func TestProbeAnswersOfOtherUnitsCount(t *testing.T) {
	artifacttest.Long(t)
	address := listening(t)
	l, u := runningUnits(t, "1", "app.service")
	l.ProbeAnyRoot = true
	u.otherProcess(address)
	u.alone[812] = processes.Process{Program: "/usr/lib/postgresql/bin/postgres", User: bob,
		Cgroup: "/system.slice/postgres.service"}
	db := u.add("postgres.service", "/usr/lib/postgresql/bin/postgres")
	db.Active = "active"
	l.app("2", probeRecipe("tcp: "+address, ""))
	r, err := l.deploy()
	l.postponed(r, err, "of user 4711 in postgres.service listens on "+address)
	if !strings.Contains(r.Hint, "unit probe") {
		t.Errorf("the hint is %q", r.Hint)
	}
	u.sockets[0].User = 0
	l.app("3", probeRecipe("tcp: "+address, ""))
	l.expect(exit.OK)
	u.sockets[0].User = bob
	l.Config.Health.Probes = []recipe.Probe{{Kind: recipe.ProbeTCP, Target: address}}
	l.app("4")
	l.expect(exit.OK) // a probe of the host
}

// TestPortTakenDuringRestartIsAHostError checks that the release whose unit or hook fails is not quarantined.
func TestPortTakenDuringRestartIsAHostError(t *testing.T) {
	artifacttest.Long(t)
	for name, c := range map[string]struct {
		version string
		socket  processes.Socket
		text    string
	}{
		"the unit ends": {"2.exits", processes.Socket{Listens: true},
			"process 812 (/usr/bin/python3) of user 4711 listens on "},
		"the socket is a connected": {"2.exits", processes.Socket{Remote: netip.MustParseAddrPort("192.0.2.1:80")},
			"process 812 (/usr/bin/python3) of user 4711"},
		"another address": {"2.exits", processes.Socket{Local: netip.MustParseAddrPort("127.0.0.9:1"), Listens: true},
			"listens on 127.0.0.9:1"},
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.ProbeAnyRoot = true
			u.otherProcess("127.0.0.1:1")
			c.socket.User, c.socket.Holders = bob, []int{812}
			if !c.socket.Local.IsValid() {
				c.socket.Local = netip.MustParseAddrPort("127.0.0.1:1")
			}
			u.sockets = []processes.Socket{c.socket}
			l.app(c.version, probeRecipe("tcp: 127.0.0.1:1", ""))
			r, err := l.deploy()
			l.postponed(r, err, c.text)
			u.runs(t, "app.service", "1")
		})
	}
}

// TestReleaseFailureWithFreePortIsQuarantined checks a failure while no other process listens on the release's port.
func TestReleaseFailureWithFreePortIsQuarantined(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.ProbeAnyRoot = true
	u.otherProcess("127.0.0.1:2") // another port
	u.alone[813] = processes.Process{Program: "/usr/sbin/nginx", Cgroup: "/system.slice/nginx.service"}
	u.sockets = append(u.sockets, processes.Socket{Local: netip.MustParseAddrPort("0.0.0.0:1"), Listens: true,
		Holders: []int{813}})
	// a worker process of nginx
	u.alone[814] = processes.Process{Program: "/usr/sbin/nginx", User: 33, Cgroup: "/system.slice/nginx.service"}
	u.sockets = append(u.sockets, processes.Socket{Local: netip.MustParseAddrPort("127.0.0.1:1"),
		Remote: netip.MustParseAddrPort("127.0.0.1:40000"), User: 33, Holders: []int{814}})
	l.app("2.exits", probeRecipe("tcp: 127.0.0.1:1", ""))
	l.expect(exit.RolledBack)
	if got := l.inQuarantine(); len(got) != 1 || got[0] != "myapp 2.exits" {
		t.Errorf("the quarantine has %v", got)
	}
}

// TestUnitsThatAUserDisguisesAsARelease has a user make other units look like units of the release: they are not
// restarted, and their failure does not fail the deploy.
func TestUnitsThatAUserDisguisesAsARelease(t *testing.T) {
	for name, arrange := range map[string]func(l *lab, u *fakeUnits, s *unit){
		"working directory": func(l *lab, u *fakeUnits, s *unit) { disguise(l, u, s, "/srv/service/current") },
		"program": func(l *lab, u *fakeUnits, s *unit) {
			s.user, s.runs = bob, real(l, "/srv/service/current/bin/app")
		},
		"user manager": func(l *lab, u *fakeUnits, s *unit) {
			delete(u.all, s.Name)
			s.Name, s.Settings = "user@4711.service", []string{"/srv/service/current/bin/app"}
			u.all[s.Name] = s
		},
		"link in the path": func(l *lab, u *fakeUnits, s *unit) {
			s.Settings = []string{owned(l, "/srv/service/current") + "/bin/app"}
		},
		"unit file": func(l *lab, u *fakeUnits, s *unit) {
			s.Settings, s.Files = []string{"/srv/service/current/bin/app"}, []string{owned(l, "")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			s := u.add("bobd.service", "/home/bob/daemon")
			s.Active, s.MainPID, s.Began = "active", 900, 1
			u.clock += 10
			arrange(l, u, s)
			s.refuse = true // a restart would fail the release
			l.app("2")
			r := l.expect(exit.OK)
			if did(r) != "restarted app.service for myapp 2" {
				t.Errorf("the report has %q", did(r))
			}
			if process := s.user == bob; process != strings.Contains(strings.Join(r.Notes, "\n"),
				"bobd.service was not restarted: its process belongs to user 4711 and seems to run from myapp 1-") {
				t.Errorf("the notes are %q", r.Notes)
			}
			st := mustStatus(t, l)
			if err := l.RunningUnits(context.Background(), &st); err != nil || len(st.Units) != 1 {
				t.Errorf("the status has units %+v, %v", st.Units, err)
			}
		})
	}
}

// TestRootProcessProvesRelease checks that a process of root's proves the release of its unit.
func TestRootProcessProvesRelease(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	s := u.add("wrapped.service", "/srv/service/current/bin/app")
	s.Settings = []string{"/usr/local/bin/wrapper"}
	s.begin(u)
	l.app("2")
	if r := l.expect(exit.OK); !strings.Contains(did(r), "restarted wrapped.service for myapp 2") {
		t.Errorf("the report has %q", did(r))
	}
}

// disguise replaces the process of a unit by a shell of bob's in a directory.
func disguise(l *lab, u *fakeUnits, s *unit, dir string) {
	s.user, s.MainPID = bob, 900
	u.alone = map[int]processes.Process{900: {Program: "/usr/bin/sleep", Directory: real(l, dir), User: bob,
		Cgroup: s.Cgroup}}
}

// real returns the path on this machine of a path of the host.
func real(l *lab, path string) string {
	l.t.Helper()
	file, err := filepath.EvalSymlinks(l.Layout.Path(path))
	if err != nil {
		l.t.Fatal(err)
	}
	return file
}

// owned makes a link of bob's to a path, or a file of bob's.
func owned(l *lab, target string) string {
	l.t.Helper()
	if os.Geteuid() != 0 {
		l.t.Skip("this test needs root: it makes files of other users")
	}
	file := filepath.Join(l.t.TempDir(), "bob")
	var err error
	if target == "" {
		err = os.WriteFile(file, nil, 0o644)
	} else {
		err = os.Symlink(target, file)
	}
	if err == nil {
		err = os.Lchown(file, bob, bob)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return file
}
