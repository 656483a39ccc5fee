package exec_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	engine "github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestARepositoryThatAnEarlierStateMakes checks that a dry run reports a missing repository as unknown, and a path that
// exists and is no repository as an error.
func TestARepositoryThatAnEarlierStateMakes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git to test with")
	}
	for name, want := range map[string]engine.Outcome{"absent": engine.Pending, "there": engine.Failed} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "there"), 0o755); err != nil {
			t.Fatal(err)
		}
		sls := "make:\n  cmd.run:\n    - name: git init --bare REPO\nclone:\n  git.latest:\n    - name: REPO\n" +
			"    - target: DIR/clone\n"
		sls = strings.NewReplacer("REPO", filepath.Join(dir, name), "DIR", dir).Replace(sls)
		if err := os.WriteFile(filepath.Join(dir, "t.sls"), []byte(sls), 0o644); err != nil {
			t.Fatal(err)
		}
		machine, err := machine.New(host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := families.New(session.Settings{
			Host: machine, ID: "plan", Grains: value.NewMap("id", "plan", "shell", "/bin/sh"), Test: true,
			States: []roots.Env{{Name: "base", Dirs: []string{dir}}},
		})
		program, err := s.Program(context.Background(), s.Named("t"))
		if err != nil {
			t.Fatal(err)
		}
		results := s.Run(context.Background(), program, nil).All()
		last := results[len(results)-1]
		if last.Outcome != want || last.Unknown != (want == engine.Pending) ||
			want == engine.Pending && !strings.Contains(last.Comment,
				"unknown, because directory "+dir+"/absent does not exist now and cmd.run") {
			t.Errorf("%s: %v, %s", name, last.Outcome.Value(), last.Comment)
		}
	}
}
