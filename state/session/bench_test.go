package session_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// BenchmarkHighstate renders, compiles and checks a tree of states on a converged host: 159 states with 40 users, 879
// with 400, 8079 with 4000. Commands run in a chroot. It also reports the processor time and the peak of the process's
// memory.
func BenchmarkHighstate(b *testing.B) {
	for _, users := range []int{40, 400, 4000} {
		b.Run(strconv.Itoa(benchtree.States(users))+"-states", func(b *testing.B) {
			if users == 4000 && os.Getenv("CORPUS_BENCH_LARGE") == "" {
				b.Skip("set CORPUS_BENCH_LARGE=1 for ten times the states")
			}
			tree := benchTree(b, users)
			tree.run(b, true) // converges the host
			b.ReportAllocs()
			before := cpu()
			for b.Loop() {
				tree.run(b, false)
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(peak()), "peak-KiB")
		})
	}
}

// run makes one run with a new session. Every step must succeed, and without mayChange none may change anything.
func (t tree) run(b testing.TB, mayChange bool) {
	b.Helper()
	h, err := machine.New(host.Options{Root: t.root, Chroot: true})
	if err != nil {
		b.Fatal(err)
	}
	s, p := benchtree.Program(b, h)
	results := s.Run(b.Context(), p, nil).All()
	if len(results) != t.states {
		b.Fatalf("%d states ran, not %d", len(results), t.states)
	}
	for _, r := range results {
		if r.Outcome.Value() != true || !mayChange && r.Changes.Len() > 0 {
			b.Fatalf("%s: %s, changes %s", r.Step.Tag(), r.Comment, value.Repr(r.Changes))
		}
	}
}

// peak returns the largest resident size of this process so far, in KiB.
func peak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss
}

// cpu returns the processor time that this process and its commands have used so far.
func cpu() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}

// TestHighstate checks that the tree of the benchmark converges, and that a second run changes nothing.
func TestHighstate(t *testing.T) {
	tree := benchTree(t, 2)
	tree.run(t, true)
	tree.run(t, false)
}
