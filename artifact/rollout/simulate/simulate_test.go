package simulate_test

import (
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout/simulate"
)

// TestBadReleaseReachesOnlyFirstWave also checks that a good release reaches every host.
func TestBadReleaseReachesOnlyFirstWave(t *testing.T) {
	bad := simulate.Run(simulate.Params{Hosts: 1000, Seed: 7, Fails: simulate.Failures{Share: 1}, Regions: 4})
	if bad.Stopped == "" || bad.Tried > bad.Waves[0] || len(bad.Broken) > 0 {
		t.Errorf("a bad release: %+v", bad)
	}
	good := simulate.Run(simulate.Params{Hosts: 1000, Seed: 7, Regions: 4})
	if good.Stopped != "" || good.Healthy != 1000 || len(good.Broken) > 0 {
		t.Errorf("a good release: %+v", good)
	}
	if least := 17 * time.Hour; good.Ended < least || good.Ended > least+2*time.Hour {
		t.Errorf("a good release took %s", good.Ended)
	}
}

// TestSimulationIsReproducible simulates all kinds of faults twice.
func TestSimulationIsReproducible(t *testing.T) {
	p := faulty(3)
	if a, b := simulate.Run(p), simulate.Run(p); !reflect.DeepEqual(a, b) {
		t.Errorf("two runs differ:\n%+v\n%+v", a, b)
	}
}

// faulty returns a rollout with faults of the store, the hosts and the release, chosen by the seed.
func faulty(seed uint64) simulate.Params {
	p := simulate.Params{Hosts: 200, Seed: seed, Regions: int(seed%5) + 1, Cluster: int(seed%7)*5 + 5}
	p.Faults = simulate.Faults{Refused: float64(seed%3) * 0.1, Lost: float64(seed%4) * 0.1,
		Stale:   time.Duration(seed%2) * time.Minute,
		Outages: int(seed % 3), Outage: time.Hour}
	switch seed % 6 {
	case 1:
		p.Fails.Share = 1
	case 2:
		p.Fails.Share = 0.1
	case 3:
		p.Fails.Region = "region1"
	case 4:
		p.Fails.After = 5 * time.Hour
	case 5:
		p.Faults.Dead = 0.05
	}
	if seed%11 == 0 {
		p.Plan = rollout.Default()
		p.Plan.Halt = rollout.Halt{Share: 10 * rollout.Percent}
	}
	return p
}

// TestInvariants checks rollouts: none continues beyond a limit that its hosts can read, no host deploys without enough
// results, and every good release reaches all hosts. CORPUS_SEEDS=10000 tries that many seeds, and CORPUS_SEED=N
// repeats one that failed.
func TestInvariants(t *testing.T) {
	first, seeds := uint64(0), uint64(1000)
	if n, err := strconv.ParseUint(os.Getenv("CORPUS_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("CORPUS_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	for i := range seeds {
		seed := first + i
		r := simulate.Run(faulty(seed))
		if len(r.Broken) == 0 {
			continue
		}
		t.Errorf("%q\nrepeat it with: CORPUS_SEED=%d go test -run Invariants ./artifact/rollout/simulate", r.Broken, seed)
		if again := simulate.Run(faulty(seed)); !reflect.DeepEqual(r, again) {
			t.Errorf("seed %d does not replay: %q", seed, again.Broken)
		}
	}
}

func BenchmarkTenThousandHosts(b *testing.B) {
	for b.Loop() {
		simulate.Run(simulate.Params{Hosts: 10_000, Seed: 7, Regions: 8})
	}
}

func BenchmarkHundredThousandHosts(b *testing.B) {
	for b.Loop() {
		simulate.Run(simulate.Params{Hosts: 100_000, Seed: 7, Regions: 8, Fails: simulate.Failures{Share: 0.01},
			Plan: func() rollout.Plan {
				p := rollout.Default()
				p.Halt = rollout.Halt{Share: 10 * rollout.Percent}
				return p
			}()})
	}
}
