package state

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The exit of the engine's process counts: processes that its states started may hold its output open, and continue.
func TestEngineResultIgnoresBackgroundProcesses(t *testing.T) {
	p := program{argv: []string{"/bin/sh", "-c", "sleep 30 & echo $!"}, env: []string{"PATH=" + os.Getenv("PATH")},
		dir: "/"}
	outcome, err := p.Apply(t.Context(), nil)
	if err != nil {
		t.Fatalf("the engine ended with success: %v", err)
	}
	pid := strings.TrimSpace(outcome.Output)
	time.Sleep(100 * time.Millisecond)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil || strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %q of the engine was ended: %s, %v", pid, stat, err)
	}
}
