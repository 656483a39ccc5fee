package state_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// seen is an observer that keeps the names, comments and changes of the steps.
type seen struct{ text strings.Builder }

func (*seen) StepStarted(*compile.Step) {}
func (s *seen) StepDone(r *exec.Result) {
	fmt.Fprintf(&s.text, "%s %s %s\n", r.Step.Name(), r.Comment, value.Str(r.Changes))
}

func TestProcedureSeesItsVariablesAndKeepsSecrets(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "srv/salt"), 0o755); err != nil {
		t.Fatal(err)
	}
	sls := "/out:\n  file.managed:\n    - contents: \"{{ cfg.password }} for {{ cfg.name }}\"\n"
	if err := os.WriteFile(filepath.Join(root, "srv/salt/00.sls"), []byte(sls), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	request := state.Request{
		Host: h, Grains: value.NewMap("id", "host"), StateRoots: []string{"/srv/salt"},
		Vars: value.NewMap("cfg", value.NewMap("name", "myapp", "password", "swordfish")), Redactor: &redact.Redactor{},
	}
	request.Redactor.Add("swordfish")
	program, err := state.SLS(context.Background(), request, "00")
	if err != nil {
		t.Fatal(err)
	}
	var observer seen
	if _, err := program.Apply(context.Background(), &observer); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "out")); err != nil ||
		strings.TrimSpace(string(data)) != "swordfish for myapp" {
		t.Errorf("the host has %q, %v", data, err)
	}
	if text := observer.text.String(); strings.Contains(text, "swordfish") || !strings.Contains(text, "/out") {
		t.Errorf("the results are %s", text)
	}
}
