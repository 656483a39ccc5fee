package state

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestEngineResultIgnoresBackgroundProcesses checks that the result follows the exit of the engine's process:
// background processes of its states may hold its output open, and continue.
func TestEngineResultIgnoresBackgroundProcesses(t *testing.T) {
	p := program{argv: []string{"/bin/sh", "-c", "sleep 30 & echo $!"}, env: []string{"PATH=" + os.Getenv("PATH")},
		dir: "/"}
	outcome, err := p.Apply(t.Context(), nil)
	if err != nil {
		t.Fatalf("the engine succeeded, and Apply fails: %v", err)
	}
	pid := strings.TrimSpace(outcome.Output)
	time.Sleep(100 * time.Millisecond)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil || strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %q of the engine was ended: %s, %v", pid, stat, err)
	}
}
