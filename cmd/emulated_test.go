//go:build integration

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDemoEmulated runs the demo with the arm64 programs in a user-mode emulator, which does not support all system
// calls of Linux: openat2(2) is missing.
func TestDemoEmulated(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("the arm64 programs run here without an emulator")
	}
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		emulator, err = exec.LookPath("qemu-aarch64")
	}
	if err != nil {
		t.Skip("install qemu-user-static, or qemu-user, to run the arm64 programs")
	}
	arm, bin := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", arm, "./corpus-agent", "./corpus")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	for _, name := range []string{"corpus-agent", "corpus"} {
		// User-mode emulators are known to handle the signals that preempt goroutines badly.
		script := "#!/bin/sh\nGODEBUG=asyncpreemptoff=1 exec " + emulator + " " + filepath.Join(arm, name) + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := demo(t, bin, filepath.Join(t.TempDir(), "demo"))
	for _, want := range []string{"rolled back", "myapp 1.1"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not print %q:\n%s", want, out)
		}
	}
}
