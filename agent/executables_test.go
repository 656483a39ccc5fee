package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// notes is the program of a procedure: it writes down its name, the version, its directory and its configuration.
const notes = `#!/bin/sh
echo "$CORPUS_STAGE $CORPUS_VERSION ${PWD##*/}" >> /procedures
while read -r line; do echo "$line"; done < "$CORPUS_CFG" > "/cfg-$CORPUS_STAGE"
`

// executables publishes a version of a project whose procedures are all programs.
func (l *lab) executables(version string, more artifacttest.Files) {
	l.t.Helper()
	files := artifacttest.Files{"version": version, ".salt/PILLAR.sample": "data: {greeting: hello}\n",
		"corpus.yaml": "writable: [version]\n"}
	for _, name := range []string{"archive", "release-sync", "fixperms", "install", "rollback", "notify"} {
		files[".salt/"+name] = notes
	}
	for name, text := range more {
		files[name] = text
	}
	l.repo.Release("myapp", version, "testing", files)
}

// ran returns what procedures wrote since the last call.
func (l *lab) ran() string {
	l.t.Helper()
	log := l.Layout.Path("/procedures")
	data, err := os.ReadFile(log)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.Remove(log); err != nil {
		l.t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", ", ")
}

// dir returns the directory of a version's release.
func (l *lab) dir(version string) string {
	l.t.Helper()
	found, err := filepath.Glob(filepath.Join(l.Layout.Project("myapp").Releases(), version+"-*"))
	if err != nil || len(found) != 1 {
		l.t.Fatalf("the releases of %s are %v, %v", version, found, err)
	}
	return filepath.Base(found[0])
}

// TestExecutablesTakeThePlaceOfProcedures has a project whose procedures are programs: each runs at its stage, from the
// release, with the configuration as JSON in the file that CORPUS_CFG names.
func TestExecutablesTakeThePlaceOfProcedures(t *testing.T) {
	l := newHookLab(t)
	l.executables("1", nil)
	l.expect(exit.OK)
	one := "1 " + l.dir("1")
	if got, want := l.ran(), "release-sync "+one+", fixperms "+one+", install "+one+", fixperms "+one+", notify "+
		one; got != want {
		t.Errorf("the first deploy ran %s, want %s", got, want)
	}
	var cfg struct {
		Name    string
		Version string
		Data    map[string]any
	}
	data, err := os.ReadFile(l.Layout.Path("/cfg-install"))
	if err == nil {
		err = json.Unmarshal(data, &cfg)
	}
	if err != nil || cfg.Name != "myapp" || cfg.Version != "1" || cfg.Data["greeting"] != "hello" {
		t.Errorf("the configuration of install is %s, %v", data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(l.Layout.State(), ".corpus-tmp*")); len(left) != 0 {
		t.Errorf("the configuration, which may have secrets, remains in %v", left)
	}

	l.executables("2", artifacttest.Files{".salt/install": "#!/bin/sh\necho the database does not exist >&2\nexit 3\n"})
	r := l.expect(exit.RolledBack)
	if !strings.Contains(r.Error, "install") || len(r.Hooks["install"]) == 0 ||
		!strings.Contains(r.Hooks["install"][0].Output, "the database does not exist") {
		t.Errorf("the report has the error %q and the output %+v", r.Error, r.Hooks["install"])
	}
	two := "2 2-"
	got := l.ran()
	for _, want := range []string{"archive " + one, "release-sync " + two, "fixperms " + two, "install " + one,
		"rollback " + one, "notify " + one} {
		if !strings.Contains(got, want) {
			t.Errorf("the deploy that failed ran %s, want it to contain %s", got, want)
		}
	}
	l.links("1", "1", "")
}

// TestArchiveThatCannotBeWritten checks that the deploy fails before it changes anything, with a hint about the
// directory.
func TestArchiveThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out/a", "1")})
	l.expect(exit.OK)
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out/a", "2")})
	archives := l.Layout.Project("myapp").Archives()
	mounted(t, archives, "ro", func() {
		_, err := l.deploy()
		if err == nil || !strings.Contains(err.Error(), archives) || !strings.Contains(diag.HintOf(err), "must be writable") {
			t.Errorf("error is %v, hint %q", err, diag.HintOf(err))
		}
		l.links("1", "1", "")
		if got := l.host("/srv/out/a"); got != "1" {
			t.Errorf("the directory has %q", got)
		}
	})
	l.expect(exit.OK)
	l.links("2", "2", "1")
}
