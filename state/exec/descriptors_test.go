package exec_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	stateexec "github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// swallowing is a resource that treats every error of reading a file as a missing file.
type swallowing struct {
	Name string `sls:"name"`
}

func (s *swallowing) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if _, err := h.Files.ReadFile(s.Name); err != nil {
		return module.Diff{Comment: "there is nothing to do"}, nil //nolint:nilerr // a module with a fault
	}
	return module.Diff{Comment: "all is well"}, nil
}

func (s *swallowing) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}

// TestAStepWhoseModuleSwallowsEMFILEFails runs a state in a process that has no file descriptor left.
func TestAStepWhoseModuleSwallowsEMFILEFails(t *testing.T) {
	if os.Getenv("CORPUS_TEST_SWALLOW") == "" {
		// The test runs in a separate process, since the limit of open files applies to the whole process.
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAStepWhoseModuleSwallowsEMFILEFails$", "-test.v")
		cmd.Env = append(os.Environ(), "CORPUS_TEST_SWALLOW=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	states := t.TempDir()
	file := filepath.Join(states, "file")
	sls := "t:\n  file.exists:\n    - name: " + file + "\n"
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.WriteFile(filepath.Join(states, "t.sls"), []byte(sls),
		0o644)); err != nil {
		t.Fatal(err)
	}
	machine, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{
		Host: machine, ID: "golden", Grains: value.NewMap("id", "golden"),
		States: []roots.Env{{Name: "base", Dirs: []string{states}}},
	})
	program, err := s.Program(context.Background(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	if r := swallowed(machine, program); r.Outcome == stateexec.Failed || r.Comment != "all is well" {
		t.Fatalf("with free file descriptors the step failed: %s", r.Comment)
	}
	last := exhausted(t)
	r := swallowed(machine, program)
	last()
	if r.Outcome != stateexec.Failed || !errors.Is(r.Cause(), syscall.EMFILE) ||
		!strings.Contains(r.Comment, "too many open files") {
		t.Errorf("outcome %v, cause %v, comment %q", r.Outcome, r.Cause(), r.Comment)
	}
}

func swallowed(machine *host.Host, program *compile.Program) *stateexec.Result {
	table := module.Table{"exists": func() module.Resource { return &swallowing{} }}
	runner := &stateexec.Runner{Host: machine, Modules: module.Registry{"file": table}}
	return runner.Run(context.Background(), program).All()[0]
}

// exhausted uses all file descriptors of the process until release is called.
func exhausted(t *testing.T) (release func()) {
	t.Helper()
	limit := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	return func() {
		for _, f := range held {
			_ = f.Close()
		}
	}
}
