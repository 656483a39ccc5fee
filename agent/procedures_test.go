package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sets returns an SLS file that writes a text into a file of the host.
func sets(file, text string) string {
	return "write " + file + ":\n  file.managed:\n    - name: " + file + "\n    - contents: '" + text +
		"'\n    - makedirs: true\n"
}

const breaks = "break:\n  test.fail_without_changes: []\n"

// publishSalt publishes a version of a project with procedures.
func (l *lab) publishSalt(version string, procedures map[string]string) {
	l.t.Helper()
	files := artifacttest.Files{"version": version, "corpus.yaml": "writable: [version, var]\n"}
	for name, text := range procedures {
		files[".salt/"+name] = text
	}
	l.repo.Release("myapp", version, "testing", files)
}

// host returns the content of a file of the host; "" if it does not exist.
func (l *lab) host(path string) string {
	l.t.Helper()
	data, err := os.ReadFile(l.Layout.Path(path))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return strings.TrimSuffix(string(data), "\n")
}

func stages(r interface{ StageNames() []string }) string { return strings.Join(r.StageNames(), " ") }

func TestMergedOrderOfADeploy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{
		"10_b.sls":   sets("/srv/out/b", "{{ cfg.data.greeting }} {{ cfg.version }}"),
		"00_a.sls":   sets("/srv/out/a", "{{ cfg.data_root }}"),
		"task_x.sls": breaks, "PILLAR.sample": "makina-projects.myapp:\n  data: {greeting: hello}\n",
	})
	r := l.expect(exit.OK)
	if got, want := stages(r), "resolve fetch sync fixperms link converge install install fixperms release"; got != want {
		t.Errorf("stages are %s, want %s", got, want)
	}
	if l.host("/srv/out/a") != "/srv/projects/myapp/data" || l.host("/srv/out/b") != "hello 1" {
		t.Errorf("install wrote %q and %q", l.host("/srv/out/a"), l.host("/srv/out/b"))
	}
	for link, want := range map[string]string{"/srv/salt/makina-projects/myapp": "../../projects/myapp/next/.salt",
		"/srv/pillar/makina-projects/myapp": "../../projects/myapp/pillar"} {
		if got, err := os.Readlink(l.Layout.Path(link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v, want %q", link, got, err, want)
		}
	}
	entry, err := ledger.LoadProject(l.Layout.Registry("myapp"))
	if err != nil || entry.APIVersion != 2 || entry.Saved == nil {
		t.Fatalf("the registry has %+v, %v", entry, err)
	}
	if v, _ := value.Lookup(entry.Configuration, "data:greeting", ":"); v != "hello" {
		t.Errorf("the saved configuration is %v", entry.Configuration)
	}
	l.publishSalt("2", map[string]string{"00_a.sls": sets("/srv/out/a", "2")})
	r = l.expect(exit.OK)
	if got, want := stages(r), "resolve fetch archive sync fixperms link converge install fixperms release"; got != want {
		t.Errorf("stages of an upgrade are %s, want %s", got, want)
	}
	archived := filepath.Join(l.Layout.Project("myapp").Archives(), r.ID)
	if data, err := os.ReadFile(filepath.Join(archived, "project", "version")); err != nil || string(data) != "1" {
		t.Errorf("the archive has %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(archived, "report.json")); err != nil {
		t.Error(err)
	}
}

func TestInstallStopsAtTheFirstFailureAndRollsBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out/a", "1"),
		"rollback.sls": sets("/srv/out/rollback", "to {{ cfg.version }}")})
	l.expect(exit.OK)
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2"), "10.sls": breaks,
		"20.sls": sets("/srv/out/c", "2"), "rollback.sls": breaks})
	r := l.expect(exit.RolledBack)
	if !strings.Contains(r.Error, "install of 10") {
		t.Errorf("the error is %q", r.Error)
	}
	l.links("1", "1", "")
	if l.host("/srv/out/a") != "1" || l.host("/srv/out/c") != "" || l.host("/srv/out/rollback") != "to 1" {
		t.Errorf("after the rollback: a %q, c %q, rollback %q", l.host("/srv/out/a"), l.host("/srv/out/c"),
			l.host("/srv/out/rollback"))
	}
}

// TestReleaseWithoutStatesIsPutInPlace deploys a project without an install step, and runs its install by name.
func TestReleaseWithoutStatesIsPutInPlace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{"fixperms.sls": sets("/srv/out/f", "1")})
	noted(t, l.expect(exit.OK), "myapp 1 has no states: its files are in place at /srv/projects/myapp/current, and "+
		"nothing else was done")
	l.links("1", "1", "")
	only, err := procedure.ParseOnly("install")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Deploy(context.Background(), agent.Given{Only: only}, false)
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "nothing to install") || diag.HintOf(err) == "" {
		t.Errorf("an install by name ends with %v", err)
	}
}

func TestProjectProceduresReplaceBuiltInOnes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	own := map[string]string{
		"00.sls": sets("/srv/out/a", "1"), "fixperms.sls": sets("/srv/out/fixperms", "{{ cfg.user }}"),
		"release-sync.sls": sets("/srv/out/sync", "{{ cfg.release }}"),
		"notify.sls":       sets("/srv/out/notify", "{{ cfg.version }}"),
		"archive.sls":      sets("/srv/out/archive", "{{ cfg.current_archive_dir }}"),
	}
	l.publishSalt("1", own)
	l.expect(exit.OK)
	if l.host("/srv/out/fixperms") != "myapp-user" || l.host("/srv/out/notify") != "1" ||
		l.host("/srv/out/archive") != "" {
		t.Errorf("fixperms %q, notify %q, archive %q", l.host("/srv/out/fixperms"), l.host("/srv/out/notify"),
			l.host("/srv/out/archive"))
	}
	if !strings.HasPrefix(l.host("/srv/out/sync"), "/srv/projects/myapp/releases/1-") {
		t.Errorf("the input of release-sync is %q", l.host("/srv/out/sync"))
	}
	l.publishSalt("2", map[string]string{"00.sls": breaks, "notify.sls": sets("/srv/out/notify", "2")})
	r := l.expect(exit.RolledBack)
	if want := "/srv/projects/myapp/archives/" + r.ID; l.host("/srv/out/archive") != want {
		t.Errorf("the input of archive is %q, want %q", l.host("/srv/out/archive"), want)
	}
	if l.host("/srv/out/notify") != "1" {
		t.Errorf("notify ran for %q, although the failed release was moved", l.host("/srv/out/notify"))
	}
	l.publishSalt("3", map[string]string{"00.sls": sets("/srv/out/a", "3"), "notify.sls": breaks})
	noted(t, l.expect(exit.OK), "the procedure notify failed")
}

// TestArchiveWithoutSpaceDoesNotFailTheDeploy has a user fill the writable paths of the project.
func TestArchiveWithoutSpaceDoesNotFailTheDeploy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", ".salt/00.sls": sets("/srv/out/a", "1"),
		"corpus.yaml": "writable: [big]\n", "big": strings.Repeat("x", 1<<20)})
	l.expect(exit.OK)
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2")})
	mounted(t, l.Layout.Project("myapp").Archives(), "size=256k", func() {
		l.Config.ArchiveRequired = true
		_, err := l.deploy()
		if err == nil || !strings.Contains(err.Error(), "the archive would take 1.0 MiB") ||
			!strings.Contains(err.Error(), "256.0 KiB free; largest: big (1.0 MiB)") {
			t.Errorf("error is %v, want both sizes and the largest file", err)
		}
		l.links("1", "1", "")
		l.Config.ArchiveRequired = false
		r := l.expect(exit.OK)
		noted(t, r, "was not archived: the archive would take 1.0 MiB")
		noted(t, r, "largest: big (1.0 MiB)")
		l.links("2", "2", "1")
		if left, _ := os.ReadDir(l.Layout.Project("myapp").Archives()); len(left) != 0 {
			t.Errorf("the archives are %v", left)
		}
	})
}

// TestOldArchivesMakeRoomForANewOne has room for two archives, with a quota of three.
func TestOldArchivesMakeRoomForANewOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := func(version string) {
		l.repo.Release("myapp", version, "testing",
			artifacttest.Files{"version": version, ".salt/00.sls": sets("/srv/out/a", version),
				"corpus.yaml": "writable: [big]\n", "big": strings.Repeat(version, 1<<20)})
	}
	release("1")
	l.expect(exit.OK)
	mounted(t, l.Layout.Project("myapp").Archives(), "size=2800k", func() {
		var runs []string
		for _, version := range []string{"2", "3", "4"} {
			release(version)
			r := l.expect(exit.OK)
			l.links(version, version, string(version[0]-1))
			runs = append(runs, r.ID)
			if version == "4" {
				noted(t, r, "the archive of run "+runs[0]+" was removed")
			}
		}
		for i, run := range runs {
			_, err := os.Stat(filepath.Join(l.Layout.Project("myapp").Archives(), run, layout.ArchivedTree, "big"))
			if there := err == nil; there != (i > 0) {
				t.Errorf("the archive of run %d: %v", i+1, err)
			}
		}
	})
}

func TestStepsByName(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out/a", "{{ cfg.data.n }}"),
		"PILLAR.sample": "data: {n: one}\n", "fixperms.sls": sets("/srv/out/f", "1")})
	l.expect(exit.OK)
	for _, path := range []string{"/srv/out/a", "/srv/out/f"} {
		if err := os.Remove(l.Layout.Path(path)); err != nil {
			t.Fatal(err)
		}
	}
	only, err := procedure.ParseOnly("install")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := procedure.ParseSettings([]string{"n=two"}, procedure.Input{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Deploy(context.Background(), agent.Given{Only: only, Settings: settings}, false)
	if err != nil {
		t.Fatal(err)
	}
	if l.host("/srv/out/a") != "two" || l.host("/srv/out/f") != "" || stages(r) != "install" {
		t.Errorf("install %q, fixperms %q, stages %s", l.host("/srv/out/a"), l.host("/srv/out/f"), stages(r))
	}
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2")})
	only, _ = procedure.ParseOnly("release-sync")
	r, err = l.Deploy(context.Background(), agent.Given{Only: only}, false)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "not made current")
	l.links("1", "1", "")
	if len(releaseDirs(t, l)) != 2 {
		t.Errorf("the releases on the disk are %v", releaseDirs(t, l))
	}
}

func TestDevDoesNotRollBackAutomatically(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.Dev = []string{"testing"}
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out/a", "1")})
	l.expect(exit.OK)
	l.publishSalt("2", map[string]string{"00.sls": breaks})
	noted(t, l.expect(exit.Failed), "do not roll back automatically")
	l.links("2", "2", "1")
	l.expect(exit.Failed)
	if s, err := l.Status(); err != nil || s.Failing == nil || s.Failing.Service.Version != "2" || len(s.Drift) != 1 {
		t.Errorf("status has %+v, %v", s, err)
	}
	if _, err := l.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "2")
	l.expect(exit.Failed) // nothing is quarantined, so the channel's release is retried
	l.publishSalt("3", map[string]string{"00.sls": sets("/srv/out/a", "3")})
	l.expect(exit.OK)
	l.links("3", "3", "2")
	if left, _ := filepath.Glob(filepath.Join(l.Layout.Project("myapp").Archives(), "*")); len(left) != 0 {
		t.Errorf("a dev environment archived %v", left)
	}
}

func TestBrokenRegistryIsMovedAside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out/a", "1")})
	l.expect(exit.OK)
	path := l.Layout.Registry("myapp")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2")})
	noted(t, l.expect(exit.OK), "could not be read")
	entry, err := ledger.LoadProject(path)
	if err != nil || entry.Name != "myapp" {
		t.Errorf("the registry has %+v, %v", entry, err)
	}
	newer, _ := json.Marshal(ledger.Project{APIVersion: 3, Name: "myapp"})
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.deploy(); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "API version 3") {
		t.Errorf("an entry of a newer version: %v", err)
	}
	kept, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if len(kept) != 2 || !slices.ContainsFunc(kept, func(s string) bool { return strings.Contains(s, "corrupt") }) {
		t.Errorf("the files are %v", kept)
	}
}

func TestEditableTreeOfOwnServiceHoldsTheHost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.Dev = []string{"testing"}
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	tree := l.Layout.Path("/home/me/myapp")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "version"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := l.DeployEditable(ctx, "", t.TempDir(), agent.Given{}); exit.Code(err) != exit.Usage ||
		!strings.Contains(err.Error(), "outside of the root") {
		t.Errorf("a tree outside of the root: %v", err)
	}
	r, err := l.DeployEditable(ctx, "", tree, agent.Given{})
	if err != nil {
		t.Fatal(err)
	}
	l.links("mine", "mine", "1")
	if got := l.engine.last(); got != "1+mine" {
		t.Errorf("converged %q, want the working tree with the current base", got)
	}
	noted(t, r, "this host is held")
	if w, err := l.Why(); err != nil || w.Reason != "myapp editable (unsigned) came by editable" || len(w.Signed) != 1 {
		t.Errorf("why has the reason %q for %+v, %v", w.Reason, w.Signed, err)
	}
	l.publish("2")
	noted(t, l.expect(exit.OK), "waits")
	l.links("mine", "mine", "1")
	if _, err := l.Unhold(); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	l.links("2", "2", "mine")
	if data, err := os.ReadFile(filepath.Join(tree, "version")); err != nil || string(data) != "mine" {
		t.Errorf("the working tree has %q, %v", data, err)
	}
	l.Config.Dev = nil
	if _, err := l.DeployEditable(ctx, "", tree, agent.Given{}); exit.Code(err) != exit.Refused {
		t.Errorf("in staging: %v", err)
	}
}

// TestLedgerOfNewerVersionIsDowngraded checks a host whose agent was downgraded after a change of the ledger's format:
// it continues with the fields that it reads, and keeps the others.
func TestLedgerOfNewerVersionIsDowngraded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	data, err := os.ReadFile(l.Layout.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(data), `"version": 1,`, `"version": 99, "cohort": "canary",`, 1)
	if err := os.WriteFile(l.Layout.Ledger(), []byte(newer), 0o644); err != nil {
		t.Fatal(err)
	}
	noted(t, l.expect(exit.OK), "form 99")
	if r := l.expect(exit.OK); strings.Contains(strings.Join(r.Notes, "\n"), "form 99") {
		t.Errorf("each run repeats the note: %q", r.Notes)
	}
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if data, err := os.ReadFile(l.Layout.Ledger()); err != nil || !strings.Contains(string(data), `"cohort": "canary"`) {
		t.Errorf("the fields of a newer agent are lost: %s, %v", data, err)
	}
	kept, _ := filepath.Glob(filepath.Join(l.Layout.State(), "ledger.version99-*.json"))
	if len(kept) != 1 {
		t.Fatalf("the files set aside are %v", kept)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || string(data) != newer {
		t.Errorf("the file set aside is %s, %v", data, err)
	}
}

func TestReadOnlyReleaseIsNotArchived(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	only, err := procedure.ParseOnly("archive")
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.RunProject(context.Background(), "myapp", agent.Given{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "nothing to archive")
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2")})
	l.expect(exit.OK)
	if r, err = l.RunProject(context.Background(), "myapp", agent.Given{Only: only}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(l.Layout.Project("myapp").Archives(), r.ID, "project", "version")); err != nil {
		t.Error(err)
	}
}
