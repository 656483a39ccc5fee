package cmd_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// mostAllocations is how many objects the packages of corpus-agent may make before main begins, as Go's runtime counts
// them. A count is the same on every machine, and start-up time follows it.
const mostAllocations = 10500

var initialised = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)

// TestStart keeps work out of what runs before main.
func TestStart(t *testing.T) {
	cmd := exec.Command(filepath.Join(bin(t), "corpus-agent"), "version")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packages := initialised.FindAllStringSubmatch(string(out), -1)
	if len(packages) == 0 {
		t.Fatalf("the runtime names no package:\n%s", out)
	}
	total := 0
	for _, p := range packages {
		n, err := strconv.Atoi(p[3])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total > mostAllocations {
		t.Errorf("%d objects are made before main, and %d may be: GODEBUG=inittrace=1 corpus-agent version shows by "+
			"which packages",
			total, mostAllocations)
	}
}
