package dialog

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestProcessEndsWithAKilledProgram starts this test again, which starts a process that reads nothing, and
// kills itself.
func TestProcessEndsWithAKilledProgram(t *testing.T) {
	const name = "CORPUS_TEST_DIALOG"
	if os.Getenv(name) != "" {
		d, err := Start(exec.Command("/bin/sleep", "30"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(d.cmd.Process.Pid)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessEndsWithAKilledProgram$")
	cmd.Env = append(os.Environ(), name+"=1")
	out, _ := cmd.Output() // it is killed
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the process continues after the program that started it was killed")
		}
	}
}
