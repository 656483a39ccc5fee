package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (l *lab) publishNeeding(version, says string) {
	l.t.Helper()
	l.repo.Release("myapp", version, "testing", artifacttest.Files{
		"version": version, "salt/config/states/top.sls": "base: {}", needs.File: `{"needs": ` + says + `}`,
	})
}

func TestAReleaseThatCannotRunHereIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ says, want string }{
		"architecture": {`{"arch": "vax"}`, "it is built for vax, and this host is "},
		"interpreter":  {`{"programs": ["/usr/bin/python9"]}`, "/usr/bin/python9 does not exist"},
		"C library":    {`{"glibc": "2.36"}`, "it needs the GNU C library, and there is none"},
		"nonsense":     {`{"arch": 7}`, "reading what myapp 2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			l.publishNeeding("2", c.says)
			ran := len(l.engine.converged)
			r, err := l.deploy()
			if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("exit code %d (%v), want a refusal with %q", exit.Code(err), err, c.want)
			}
			if name != "nonsense" && !strings.Contains(diag.HintOf(err), "install what is missing") {
				t.Errorf("the hint is %q", diag.HintOf(err))
			}
			if about := r.About(); about == nil || about.Service.Version != "1" || r.To.Service.Version != "2" {
				t.Errorf("the run names %v and was to deploy %v, want myapp 1, which the host runs, and 2", about, r.To)
			}
			l.links("1", "1", "")
			if len(l.engine.converged) == ran {
				t.Error("the current pair does not converge any more")
			}
			l.publish("3") // the next release is deployed
			l.expect(exit.OK)
			l.links("3", "3", "1")
		})
	}
}

func TestADryRunRefusesToo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publishNeeding("2", `{"arch": "vax"}`)
	if _, err := l.Deploy(context.Background(), l.firstDeploy(), true); exit.Code(err) != exit.Refused {
		t.Errorf("the dry run ends with %v", err)
	}
}

func TestRequirementsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishNeeding("1", `{"programs": ["/usr/bin/python9"]}`)
	l.expect(exit.Refused)
	file := l.Layout.Path("/usr/bin/python9")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	l.links("1", "1", "")
}

// publishTemplate publishes a version with a template and a state that watches its target.
func (l *lab) publishTemplate(version, template string) {
	l.t.Helper()
	l.repo.Release("myapp", version, "testing", artifacttest.Files{
		"version": version, "etc/app.conf.j2": template,
		"salt/config/states/top.sls": "base:\n  '*': [app]\n",
		"salt/config/states/app.sls": "told:\n  test.succeed_with_changes:\n  - onchanges: [{file: /etc/myapp/app.conf}]\n",
		"salt/config/pillar/top.sls": "base:\n  '*': [app]\n",
		"salt/config/pillar/app.sls": "port: 8080\n",
		recipe.Name: "unheard_of: 1\ntemplates:\n- {source: etc/app.conf.j2, target: " +
			"/etc/myapp/app.conf, mode: 0640}\n",
		"salt/config/states/other.sls": "{}",
	})
}

func TestTemplatesOfARecipeAreRenderedAsStates(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = state.Native{}
	conf := l.Layout.Path("/etc/myapp/app.conf")
	l.publishTemplate("1", "port={{ pillar.port }} id={{ grains.id }}\n")
	if _, err := l.Deploy(context.Background(), l.firstDeploy(), true); err != nil {
		t.Fatalf("the dry run: %v", err)
	}
	if _, err := os.Stat(conf); err == nil {
		t.Error("the dry run wrote the file")
	}
	if r := l.expect(exit.OK); r.States.Changed != 2 {
		t.Errorf("%d states changed, want the file and the state that watches it", r.States.Changed)
	}
	data, err := os.ReadFile(conf)
	if info, statErr := os.Stat(conf); err != nil || statErr != nil ||
		!strings.HasPrefix(string(data), "port=8080 id=myapp-testing") || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %q, %v, %v", data, err, statErr)
	}
	if r := l.expect(exit.OK); r.States.Changed != 0 {
		t.Errorf("%d states changed in the second run", r.States.Changed)
	}
}

func TestInvalidTemplateStopsDeployBeforeChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = state.Native{}
	l.publishTemplate("1", "port={{ pillar.port }}\n")
	l.expect(exit.OK)
	l.publishTemplate("2", "port={{ pillar.prt.x }}\n")
	l.expect(exit.RolledBack)
	if now, err := os.ReadFile(l.Layout.Path("/etc/myapp/app.conf")); err != nil || string(now) != "port=8080\n" {
		t.Errorf("the file is %q, %v", now, err)
	}
}

// TestMissingInterpretersAreNoted checks the note of a dry run and of a deploy, whether or not the build recorded the
// interpreters; the release is deployed.
func TestMissingInterpretersAreNoted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it changes roots")
	}
	t.Parallel()
	for name, files := range map[string]artifacttest.Files{
		"recorded":  {needs.File: `{"needs": {"interpreters": {"rubyy": "bin/x"}}}`},
		"looked up": {"bin/x": "#!/usr/bin/env rubyy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Chroot = true
			files["version"] = "1"
			l.repo.Release("myapp", "1", "testing", files)
			dry, err := l.Deploy(context.Background(), l.firstDeploy(), true)
			must(t, err)
			const want = "scripts of myapp 1 name programs that are not on this host: "
			noted(t, dry, want)
			r := l.expect(exit.OK)
			noted(t, r, want)
			noted(t, r, "rubyy (bin/x)")
			if again := l.expect(exit.OK); strings.Contains(strings.Join(again.Notes, "\n"), want) {
				t.Errorf("a run without a deploy repeats the note: %q", again.Notes)
			}
		})
	}
}
