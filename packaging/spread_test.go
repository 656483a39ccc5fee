package packaging_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// placed runs the generator as systemd does on a host of this name, and returns the offset of its timer in the five
// minutes, in seconds.
func placed(t *testing.T, host string) int {
	t.Helper()
	dir := t.TempDir()
	uname := filepath.Join(dir, "uname")
	if err := os.WriteFile(uname, []byte("#!/bin/sh\necho "+host+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "systemd/corpus-agent-generator", dir, dir+"/early", dir+"/late")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "corpus-agent.timer.d", "10-place.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var minute, second int
	_, line, _ := strings.Cut(string(data), "[Timer]\nOnCalendar=\n")
	if n, err := fmt.Sscanf(line, "OnCalendar=*:%d/5:%02d\n", &minute, &second); n != 2 || err != nil || minute > 4 ||
		second > 59 {
		t.Fatalf("the timer of %s is\n%s", host, data)
	}
	return 60*minute + second
}

// TestTicksAreSpreadByTheHostsName checks that hosts with names that differ in a digit use all offsets in the five
// minutes, and that one host always uses the same.
func TestTicksAreSpreadByTheHostsName(t *testing.T) {
	t.Parallel()
	const hosts = 300
	halfMinutes := map[int]int{}
	for n := range hosts {
		halfMinutes[placed(t, fmt.Sprintf("web-production-useast1-%d", n))/30]++
	}
	for part := range 10 {
		if n := halfMinutes[part]; n < hosts/10/3 || n > hosts/10*2 {
			t.Errorf("%d of %d hosts are in half minute %d", n, hosts, part)
		}
	}
	if a, b := placed(t, "db-1.example.com"), placed(t, "db-1.example.com"); a != b {
		t.Errorf("a host has the offsets %d and %d in the five minutes", a, b)
	}
}
