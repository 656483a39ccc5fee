package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// subjectRecorder is a recorder that lists the subjects that are replaced, or refuses them.
type subjectRecorder struct {
	subjects []host.Subject
	refuse   error
}

func (n *subjectRecorder) Kept() error { return nil }

func (n *subjectRecorder) Replacing(s host.Subject) error {
	n.subjects = append(n.subjects, s)
	return n.refuse
}

// toolHost returns a host that has one tool with scripted answers.
func toolHost(t *testing.T, answer host.Output, recorder host.ChangeRecorder) (*host.Host, *hosttest.Scripted) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/sbin/corpus-tool"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	run := &hosttest.Scripted{T: t, Answers: map[string]host.Output{"/usr/sbin/corpus-tool": answer}}
	h, err := machine.New(host.Options{Root: root, Commands: run, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	return h, run
}

func TestToolQueriesAndChanges(t *testing.T) {
	recorder := &subjectRecorder{}
	h, run := toolHost(t, host.Output{Stdout: "answer\n"}, recorder)
	if out, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-tool", "-l"}}); err != nil ||
		out != "answer\n" {
		t.Errorf("the output of the tool is %q, %v", out, err)
	}
	if len(run.Writes) > 0 || len(recorder.subjects) > 0 {
		t.Errorf("a query counts as a change: %v, %v", run.Writes, recorder.subjects)
	}
	subject := host.Subject{Kind: "sysctl", Name: "a"}
	if _, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-tool", "-w"},
		Changes: subject}); err != nil {
		t.Fatal(err)
	}
	if len(run.Writes) != 1 || len(recorder.subjects) != 1 || recorder.subjects[0] != subject {
		t.Errorf("ran %v, recorded %v", run.Writes, recorder.subjects)
	}
}

func TestToolRequiresRecording(t *testing.T) {
	h, run := toolHost(t, host.Output{}, &subjectRecorder{refuse: errors.New("no room")})
	_, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-tool"},
		Changes: host.Subject{Kind: "sysctl", Name: "a"}})
	if err == nil || !strings.Contains(err.Error(), "no room") || len(run.Ran) > 0 {
		t.Errorf("got %v, and ran %v", err, run.Ran)
	}
}

func TestToolWithErrorIsReported(t *testing.T) {
	h, _ := toolHost(t, host.Output{Code: 3, Stderr: "cannot do that\nreally\n"}, nil)
	_, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-tool"}})
	var refused *host.ToolError
	if !errors.As(err, &refused) || refused.Code != 3 {
		t.Fatalf("got %v", err)
	}
	failed := host.Failed(diag.Internal, err, "doing it", "try again")
	if failed.Error() != "doing it: cannot do that; really" {
		t.Errorf("the error is %q", failed)
	}
	if os.Geteuid() == 0 && diag.HintOf(failed) != "try again [C079]" {
		t.Errorf("the hint is %q", diag.HintOf(failed))
	}
	if host.Failed(diag.Internal, nil, "doing it", "try again") != nil {
		t.Error("Failed makes an error of nil")
	}
}

func TestMissingToolIsAnError(t *testing.T) {
	h, _ := toolHost(t, host.Output{}, nil)
	_, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-none"}, Package: "corpus-tools"})
	if err == nil || !strings.Contains(diag.HintOf(host.Failed(diag.Internal, err, "doing it", "try again")),
		"corpus-tools") {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
}

func TestToolBelowARoot(t *testing.T) {
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var skipped *host.Skipped
	if _, err := h.Tool(context.Background(), host.Tool{Argv: []string{"corpus-tool"}}); !errors.As(err, &skipped) {
		t.Errorf("a tool below a root: %v", err)
	}
	if err := h.Kernel.SetHostname("x"); !errors.As(err, &skipped) {
		t.Errorf("a hostname below a root: %v", err)
	}
	if err := h.Kernel.Allowed("x"); !errors.As(err, &skipped) {
		t.Errorf("the kernel below a root: %v", err)
	}
}

func TestEnvironmentOfTheHostIsUsed(t *testing.T) {
	t.Setenv("CORPUS_TEST_HAVE", "1")
	a, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Env.Set("CORPUS_TEST_NEW", "2")
	a.Env.Unset("CORPUS_TEST_HAVE")
	out, err := a.Shell(context.Background(), host.Line{Text: "echo $CORPUS_TEST_NEW-$CORPUS_TEST_HAVE"})
	if err != nil || out.Stdout != "2-\n" {
		t.Errorf("a command sees %q, %v", out.Stdout, err)
	}
	if os.Getenv("CORPUS_TEST_NEW") != "" || os.Getenv("CORPUS_TEST_HAVE") != "1" {
		t.Error("the agent's own environment changed")
	}
}
