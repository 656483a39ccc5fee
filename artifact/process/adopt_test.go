package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// leaving is the variable with which the test starts itself as the process that adopts orphans.
const leaving = "PROCESS_TEST_LEAVING"

// TestDetachedProcessesAreKilled runs commands that detach programs by sessions, forks and an empty environment.
func TestDetachedProcessesAreKilled(t *testing.T) {
	t.Parallel()
	if command := os.Getenv(leaving); command != "" {
		end := adopt()
		if err := exec.Command("/bin/sh", "-c", command).Run(); err != nil {
			t.Fatal(err)
		}
		for _, name := range end() {
			fmt.Println("ended", name)
		}
		return
	}
	for i, command := range []string{
		"setsid -f sleep %s", "env -i setsid -f sh -c 'setsid -f sh -c \"sleep %s & sleep 600\"'", "(sleep %s &)",
	} {
		unique := fmt.Sprintf("600.%d%d", os.Getpid(), i)
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, "-test.run=^TestDetachedProcessesAreKilled$", "-test.v")
		c.Env = append(os.Environ(), leaving+"="+fmt.Sprintf(command, unique))
		out, err := c.Output()
		if err != nil || !strings.Contains(string(out), "ended s") {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		for _, p := range processes() {
			if data, _ := os.ReadFile("/proc/" + p.name() + "/cmdline"); strings.HasSuffix(string(data), unique+"\x00") {
				t.Errorf("%s continues after %s", strings.ReplaceAll(string(data), "\x00", " "), command)
			}
		}
	}
}
