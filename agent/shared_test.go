package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// waysToShare are the ways in which another user gets access to a path.
func waysToShare(t *testing.T) map[string]func(path string) error {
	t.Helper()
	all := map[string]func(path string) error{
		"0777":        func(path string) error { return os.Chmod(path, 0o777) },
		"other owner": func(path string) error { return os.Lchown(path, projectUser, projectUser) },
		"a link of another user": func(path string) error {
			if err := os.Rename(path, path+".moved"); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Base(path)+".moved", path); err != nil {
				return err
			}
			return os.Lchown(path, projectUser, projectUser)
		},
	}
	// user::rwx user:64011:rwx group::r-x mask::rwx other::r-x, in the form of setfacl(1)
	list := artifacttest.ACL(projectUser, 7, artifacttest.Rights{Owner: 7, Group: 5, Other: 5})
	share := func(path string) error { return unix.Setxattr(path, "system.posix_acl_access", list, 0) }
	if share(t.TempDir()) == nil { // the filesystem has lists
		all["ACL"] = share
	}
	return all
}

// sharedHost returns a host with base and a service deployed, a pillar, and a second release as the target of a
// rollback.
func sharedHost(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.publishBase("b1")
	for _, version := range []string{"1", "2"} {
		l.repo.Release("myapp", version, "testing", artifacttest.Files{"version": version})
		l.expect(exit.OK)
	}
	write(t, filepath.Join(l.pillar(), "init.sls"), "port: 8080\n")
	if r := l.expect(exit.OK); len(r.Notes) > 0 {
		t.Fatalf("without shared paths, the run has the notes %q", r.Notes)
	}
	return l
}

func (l *lab) pillar() string { return l.Layout.Project("myapp").Pillar() }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sameHost returns a copy of a host with its own tree.
func (l *lab) sameHost(t *testing.T) *lab {
	t.Helper()
	other := *l
	own := *l.Agent
	other.Agent, other.t, other.engine = &own, t, &engine{}
	own.Engine = other.engine
	own.Layout = layout.At(filepath.Join(t.TempDir(), "root"))
	if out, err := exec.Command("cp", "-a", l.Layout.Root, own.Layout.Root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &other
}

// TestPathsWritableByOthersAreReclaimedOrRefused gives another user access to each path that the agent reads or runs as
// root.
func TestPathsWritableByOthersAreReclaimedOrRefused(t *testing.T) {
	needsRoot(t)
	whole := sharedHost(t)
	const (
		above     = iota // no run reads or executes anything
		directory        // is given to root
		closed           // is given to root, without access for other users
		content          // is refused; base still converges
		link             // is given to root
	)
	for path, kind := range map[string]int{
		"/":                                   above,
		"/srv":                                above,
		"/var":                                above,
		"/var/lib":                            above,
		"/srv/projects":                       directory,
		"/srv/projects/myapp":                 directory,
		"/srv/projects/base":                  directory,
		"/srv/projects/myapp/releases":        directory,
		"/srv/projects/myapp/archives":        closed,
		"/srv/projects/myapp/pillar":          closed,
		"/srv/projects/base/pillar":           closed,
		"/srv/projects/myapp/pillar/init.sls": content,
		"/srv/projects/myapp/next":            link,
		"/srv/projects/myapp/current":         link,
		"/srv/projects/myapp/previous":        link,
		"/srv/projects/myapp/project":         link,
		"/srv/base":                           link,
		"/srv/service":                        link,
	} {
		for how, share := range waysToShare(t) {
			if kind == link && how != "other owner" || path == "/" && how == "other owner" || strings.HasSuffix(how, "user") &&
				(kind == above || kind == directory || kind == closed) {
				continue // a link has no mode, and the owner of the tree is trusted
			}
			t.Run(path+" "+how, func(t *testing.T) {
				l := whole.sameHost(t)
				at := l.Layout.Path(path)
				if err := share(at); err != nil {
					t.Fatal(err)
				}
				status, err := l.Status()
				if seen := strings.Join(append(status.Drift, status.Uncontrolled...), "\n"); err != nil ||
					!strings.Contains(seen, path) || (kind == above) != (len(status.Uncontrolled) > 0) {
					t.Errorf("status: drift %q, refused %q, %v", status.Drift, status.Uncontrolled, err)
				}
				r, err := l.Deploy(t.Context(), agent.Given{}, false)
				switch {
				case kind == above:
					if exit.Code(err) != exit.Refused || len(l.engine.converged) > 0 ||
						!strings.Contains(err.Error(), at+" can be changed by") ||
						!strings.Contains(diag.HintOf(err), "chown root: "+at+" && chmod 755 "+at) {
						t.Errorf("%v, hint %q; converged %q", err, diag.HintOf(err), l.engine.converged)
					}
					return
				case kind == content:
					if exit.Code(err) != exit.Refused || l.engine.last() != "b1+" ||
						!strings.Contains(err.Error(), at+" can be changed by") || !strings.Contains(diag.HintOf(err), at) {
						t.Errorf("%v, hint %q; converged %q", err, diag.HintOf(err), l.engine.converged)
					}
					l.refusesContent(at)
					return
				}
				if err != nil || l.engine.last() != "b1+2" {
					t.Fatalf("%v; converged %q", err, l.engine.converged)
				}
				noted(t, r, path)
				if got := owner(t, at); got != 0 {
					t.Errorf("%s belongs to %d", path, got)
				}
				info, err := os.Stat(at)
				want := map[bool]os.FileMode{true: 0o700, false: 0o755}[kind == closed]
				if err != nil || info.Mode().Perm() != want {
					t.Errorf("%s has mode %v, want %v; %v", path, info.Mode(), want, err)
				}
				if r := l.expect(exit.OK); len(r.Notes) > 0 {
					t.Errorf("the next run has the notes %q", r.Notes)
				}
			})
		}
	}
}

// refusesContent checks that no other command renders a shared pillar, and that runs work again after an operator has
// corrected it.
func (l *lab) refusesContent(at string) {
	l.t.Helper()
	if _, err := l.Deploy(l.t.Context(), agent.Given{}, true); exit.Code(err) != exit.Refused {
		l.t.Errorf("a dry run: %v", err)
	}
	if _, err := l.Rollback(l.t.Context()); exit.Code(err) != exit.Refused {
		l.t.Errorf("a rollback: %v", err)
	}
	if _, err := l.Session(l.t.Context(), inspect.Trees{}, false); exit.Code(err) != exit.Refused {
		l.t.Errorf("a call: %v", err)
	}
	if s, err := l.Status(); err != nil || len(s.Quarantined) > 0 || s.Deployed.Service.Version != "2" {
		l.t.Errorf("status: quarantined %v, deployed %v, %v", s.Quarantined, s.Deployed, err)
	}
	must(l.t, os.RemoveAll(at))
	write(l.t, at, "port: 8080\n")
	if l.expect(exit.OK); l.engine.last() != "b1+2" {
		l.t.Errorf("converged %q", l.engine.converged)
	}
}

// TestPillarThatEveryUserCanWriteIsNotRendered has a user write a template into the pillar that would run a program as
// root.
func TestPillarThatEveryUserCanWriteIsNotRendered(t *testing.T) {
	needsRoot(t)
	l := newNativeLab(t)
	l.publishBase("b1")
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	l.expect(exit.OK)
	must(t, exec.Command("chmod", "-R", "777", l.Layout.Projects()).Run())
	evil := filepath.Join(t.TempDir(), "pwned")
	init := filepath.Join(l.pillar(), "init.sls")
	write(t, init, "{% set x = salt['cmd.run']('touch "+evil+"') %}\na: 1\n")
	must(t, os.Chown(init, projectUser, projectUser))
	l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2"})
	r := l.expect(exit.Refused)
	noted(t, r, "/srv/projects/myapp/pillar could be changed by any user; it is root's alone again")
	if _, err := os.Stat(evil); err == nil || !strings.Contains(r.Error, init+" can be changed by user 64011") {
		t.Errorf("the pillar was rendered; error %q", r.Error)
	}
	if !strings.Contains(r.Hint,
		"cp --remove-destination "+init+" "+init+".new && chmod go-w "+init+".new && mv -f "+init+".new "+init) {
		t.Errorf("hint %q", r.Hint)
	}
}

// TestStateDirectoryThatOtherUsersCanChangeIsNotRead gives another user access to files of the state directory, and to
// their copies.
func TestStateDirectoryThatOtherUsersCanChangeIsNotRead(t *testing.T) {
	needsRoot(t)
	whole := sharedHost(t)
	for _, path := range []string{"/var/lib/corpus/ledger.json", "/var/lib/corpus/trust/root.json",
		"/var/lib/corpus/trust", "/srv/projects/.ledger.json"} {
		for how, share := range waysToShare(t) {
			if how == "a link of another user" {
				continue
			}
			t.Run(path+" "+how, func(t *testing.T) {
				l := whole.sameHost(t)
				at := l.Layout.Path(path)
				must(t, share(at))
				refused := strings.Join(mustStatus(t, l).Uncontrolled, "\n")
				copied := filepath.Dir(path) == "/srv/projects"
				closed := filepath.Base(path) == "trust" && how != "other owner" // no file in the directory was shared
				if refused != "" && (copied || closed) || !copied && !closed && (!strings.Contains(refused,
					at+" can be changed by") || !strings.Contains(refused, "cp -dR ")) {
					t.Errorf("status says that runs are refused: %q", refused)
				}
				if copied || closed {
					r, err := l.Deploy(t.Context(), agent.Given{}, false)
					if err != nil || l.engine.last() != "b1+2" || owner(t, at) != 0 {
						t.Fatalf("%v; converged %q, %s belongs to %d", err, l.engine.converged, path, owner(t, at))
					}
					if copied {
						noted(t, r, path+" could be changed by ")
					}
					return
				}
				_, err := l.Deploy(t.Context(), agent.Given{}, false)
				if exit.Code(err) != exit.Refused || len(l.engine.converged) > 0 ||
					!strings.Contains(err.Error(), at+" can be changed by") {
					t.Errorf("%v; converged %q", err, l.engine.converged)
				}
				must(t,
					exec.Command("sh", "-c",
						strings.ReplaceAll("cp -dR STATE STATE.new && chmod -R go-w STATE.new && mv STATE STATE.old && mv "+
							"STATE.new STATE", "STATE", l.Layout.State())).Run())
				if _, err := l.Deploy(t.Context(), agent.Given{}, false); err != nil && how != "ACL" {
					t.Errorf("after the commands of the hint: %v", err)
				}
			})
		}
	}
}

// TestSharedSrvSaltIsRefused gives another user access to /srv/salt, from which procedures include SLS files.
func TestSharedSrvSaltIsRefused(t *testing.T) {
	needsRoot(t)
	l := newNativeLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{
		"version": "1", "salt/config/states/top.sls": "base: {}", ".salt/00.sls": "include: [common]\n",
	})
	common := l.Layout.Path("/srv/salt/common.sls")
	must(t, os.MkdirAll(filepath.Dir(common), 0o755))
	write(t, common, sets("/srv/out/common", "1"))
	must(t, os.Chmod(filepath.Dir(common), 0o777))
	r, err := l.deploy()
	if err == nil || !strings.Contains(r.Error, filepath.Dir(common)+" can be changed by any user") ||
		len(r.Quarantined) > 0 {
		t.Errorf("%v, quarantined %v", err, r.Quarantined)
	}
	must(t, os.Chmod(filepath.Dir(common), 0o755))
	l.expect(exit.OK)
}
