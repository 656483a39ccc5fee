package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// The limits below are 5 % above the counts when they were set. Unlike a time, a count is the same on every machine and
// under any load. A commit that makes a run more expensive on purpose raises the limit to the new count and 5 %, and
// gives the reason; one that makes it cheaper lowers the limit.
const (
	mostAllocationsPerStep = 100.1 // to render and compile 879 states and their pillar
	mostAllocationsPerLine = 11.2  // the same, per line of the rendered states
	mostCallsPerState      = 11.6  // system calls for files and processes of a state with nothing to do
	mostProcesses          = 10.5  // of a run of 159 states, which has ten guards
)

// checkLimit checks that a count is at most its limit.
func checkLimit(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%.1f %s, at most %.1f", got, what, most)
	if got > most {
		t.Errorf("%.1f %s, and the limit is %.1f; see the comment of the limits", got, what, most)
	}
}

// TestCountsOfCompiling checks the limits of the objects that compiling allocates.
func TestCountsOfCompiling(t *testing.T) {
	set, _ := settings(t, benchtree.Salt(400))
	steps, lines := 0, 0
	allocations := testing.AllocsPerRun(3, func() {
		s := families.New(set)
		matches, err := s.Top(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Program(t.Context(), matches)
		if err != nil {
			t.Fatal(err)
		}
		steps, lines = len(p.Steps), 0
		for _, step := range p.Steps {
			lines += 1 + step.Chunk.Len() - 5 // without the compiler's state, __id__, __sls__, __env__, order
		}
	})
	checkLimit(t, "allocations for a step", allocations/float64(steps), mostAllocationsPerStep)
	checkLimit(t, "allocations for a rendered line", allocations/float64(lines), mostAllocationsPerLine)
}

// counted is the environment variable with the root of a traced run.
const counted = "CORPUS_TEST_COUNTED_ROOT"

// TestCountedPass makes the run that TestCountsOfARun traces. By itself it does nothing.
func TestCountedPass(t *testing.T) {
	root, users, ok := strings.Cut(os.Getenv(counted), "\n")
	if !ok {
		return
	}
	n, err := strconv.Atoi(users)
	if err != nil {
		t.Fatal(err)
	}
	tree{root, benchtree.States(n)}.run(t, false)
}

// TestCountsOfARun checks the limits of the system calls and processes of a run with nothing to do. strace counts them
// in two runs of different size, and the difference is the cost of a state.
func TestCountsOfARun(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("this machine has no strace to count with")
	}
	few, processes := traced(t, strace, 40)
	many, _ := traced(t, strace, 80)
	states := benchtree.States(80) - benchtree.States(40)
	checkLimit(t, "system calls for a state", float64(many-few)/float64(states), mostCallsPerState)
	checkLimit(t, "processes", float64(processes), mostProcesses)
}

// countedCalls are the system calls whose number is the same in each run. Others, such as those of the scheduler,
// depend on the load.
const countedCalls = "openat,openat2,readlinkat,newfstatat,fstat,statx,faccessat,faccessat2,getdents64,pread64," +
	"lgetxattr,execve"

var call = regexp.MustCompile(`(?m)^[0-9]+ +([a-z0-9_]+)\(`)

// traced counts the system calls and the processes of a run.
func traced(t *testing.T, strace string, users int) (all, processes int) {
	t.Helper()
	tree := benchTree(t, users)
	tree.run(t, true)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", trace, "-e", "trace="+countedCalls, program,
		"-test.run", "^TestCountedPass$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d", counted, tree.root, users))
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "Operation not permitted") {
			t.Skipf("processes cannot be traced here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range call.FindAllStringSubmatch(string(data), -1) {
		if all++; found[1] == "execve" {
			processes++
		}
	}
	return all, processes - 1 // without the test itself
}
