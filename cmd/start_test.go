package cmd_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostObjects returns the maximum number of objects that the packages of a program may allocate before main, as counted
// by Go's runtime: all packages, and those of this repository. The number is the same on every machine, and the
// start-up time depends on it. Most objects of libraries are the endpoints of AWS and regular expressions;
// docs/dependencies.md has a table.
func mostObjects() map[string]struct{ all, own int } {
	return map[string]struct{ all, own int }{"corpus-agent": {all: 6200, own: 200}, "corpus": {all: 29000, own: 250}}
}

var initialised = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`)

// TestStart limits the work before main.
func TestStart(t *testing.T) {
	for program, most := range mostObjects() {
		total, own := 0, 0
		for name, objects := range objectsBeforeMain(t, program) {
			total += objects
			if strings.HasPrefix(name, module) {
				own += objects
			}
		}
		const shown = "GODEBUG=inittrace=1 %s version shows by which packages"
		if total > most.all {
			t.Errorf("%d objects are allocated before main, want at most %d: "+shown, total, most.all, program)
		}
		if own > most.own {
			t.Errorf("this repository's packages allocate %d objects before main, want at most %d: use sync.OnceValue; "+shown,
				own, most.own, program)
		}
	}
}

// objectsBeforeMain returns the number of objects that each package of a program allocates before main.
func objectsBeforeMain(t *testing.T, program string) map[string]int {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin(t), program), "version")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := map[string]int{}
	for _, p := range initialised.FindAllStringSubmatch(string(out), -1) {
		if made[p[1]], err = strconv.Atoi(p[2]); err != nil {
			t.Fatal(err)
		}
	}
	if len(made) == 0 {
		t.Fatalf("the runtime names no package:\n%s", out)
	}
	return made
}
