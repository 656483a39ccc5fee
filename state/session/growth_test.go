package session_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// cost is the cost of compiling a tree.
type cost struct{ states, objects, bytes float64 }

// compiling returns the cost of compiling the tree for a number of users, in allocated objects and bytes.
func compiling(t *testing.T, users int) cost {
	t.Helper()
	set, _ := settings(t, benchtree.Salt(users))
	once := func() {
		s := families.New(set)
		matches, err := s.Top(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Program(t.Context(), matches); err != nil {
			t.Fatal(err)
		}
	}
	once() // makes the allocations that occur once per process
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	once()
	runtime.ReadMemStats(&after)
	return cost{float64(benchtree.States(users)), float64(after.Mallocs - before.Mallocs),
		float64(after.TotalAlloc - before.TotalAlloc)}
}

// TestGrowthOfCompiling checks that the cost of each further state is the same for ten times the users, and with
// CORPUS_BENCH_LARGE for a hundred times. A list that is searched for each state would make it grow.
func TestGrowthOfCompiling(t *testing.T) {
	sizes := []int{4, 40, 400}
	if os.Getenv("CORPUS_BENCH_LARGE") != "" {
		sizes = append(sizes, 4000)
	}
	costs := make([]cost, len(sizes))
	for i, users := range sizes {
		costs[i] = compiling(t, users)
	}
	var first cost // per additional state, between the first two sizes
	for i := 1; i < len(costs); i++ {
		states := costs[i].states - costs[i-1].states
		more := cost{states, (costs[i].objects - costs[i-1].objects) / states, (costs[i].bytes - costs[i-1].bytes) / states}
		t.Logf("from %.0f to %.0f states: %.1f allocations and %.0f bytes per additional state",
			costs[i-1].states, costs[i].states,
			more.objects, more.bytes)
		if i == 1 {
			first = more
		} else if more.objects > 1.1*first.objects || more.bytes > 1.5*first.bytes {
			t.Errorf("that is more than the %.1f allocations and %.0f bytes of the first ones: something grows faster than "+
				"the states", first.objects, first.bytes)
		}
	}
}
