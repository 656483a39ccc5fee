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
	mostAllocationsPerStep = 100.1 // of compiling 879 states, the rendering of states and pillar included
	mostAllocationsPerLine = 11.2  // the same, by line of the states as they are rendered
	mostCallsPerState      = 11.6  // system calls about files and processes of a state with nothing to do
	mostProcesses          = 10.5  // of a run of 159 states, which has ten guards
)

func within(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%.1f %s, at most %.1f", got, what, most)
	if got > most {
		t.Errorf("%.1f %s, and the limit is %.1f; the comment of the limits says how to move it", got, what, most)
	}
}

// TestCountsOfCompiling holds the objects that compiling makes to their limits.
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
	within(t, "allocations for a step", allocations/float64(steps), mostAllocationsPerStep)
	within(t, "allocations for a rendered line", allocations/float64(lines), mostAllocationsPerLine)
}

// counted names the root on which a traced process makes its pass.
const counted = "CORPUS_TEST_COUNTED_ROOT"

// TestCountedPass is traced by TestCountsOfARun, and does nothing by itself.
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
	within(t, "system calls for a state", float64(many-few)/float64(states), mostCallsPerState)
	within(t, "processes", float64(processes), mostProcesses)
}

// countedCalls are those that the same run makes each time. Others, such as those of the scheduler, depend on the load.
const countedCalls = "openat,openat2,readlinkat,newfstatat,fstat,statx,faccessat,faccessat2,getdents64,pread64," +
	"lgetxattr,execve"

var call = regexp.MustCompile(`(?m)^[0-9]+ +([a-z0-9_]+)\(`)

// traced counts the system calls and the processes of a pass.
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
			t.Skipf("this machine lets no process be traced: %s", out)
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
	return all, processes - 1 // the test itself is one
}
