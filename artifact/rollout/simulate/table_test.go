package simulate_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout/simulate"
)

// TestDocumentedFailureTableMatchesSimulator compares docs/performance.md with the simulator's results for eight
// failure patterns.
func TestDocumentedFailureTableMatchesSimulator(t *testing.T) {
	page, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range simulate.Patterns() {
		p := simulate.Params{Hosts: 10_000, Seed: 7, Regions: 4, Cluster: 20}
		pattern.Set(&p)
		bad := simulate.Run(p)
		p.Plan = rollout.Default()
		p.Plan.Halt.Hosts = 0
		byShare := simulate.Run(p)
		row := fmt.Sprintf("| %s | %s | %s |", pattern.Name, cells(bad), cells(byShare))
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/performance.md lacks the row\n%s", row)
		}
	}
	good := simulate.Run(simulate.Params{Hosts: 10_000, Seed: 7, Regions: 4, Cluster: 20})
	if text := fmt.Sprintf("A good release reaches all 10,000 in %s.",
		minutes(good.Ended)); !strings.Contains(string(page), text) {
		t.Errorf("docs/performance.md lacks: %s", text)
	}
}

func cells(r simulate.Result) string {
	stops := "never, " + minutes(r.Ended)
	if r.Stopped != "" {
		stops = minutes(r.StopAt)
	}
	return fmt.Sprintf("%d | %d | %s", r.Tried, r.Failed, stops)
}

func minutes(d time.Duration) string { return rollout.Duration(d.Round(time.Minute)).String() }

// used returns the processor time of this process, which does not depend on other processes.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestAHundredThousandHosts checks that a simulation of so many hosts takes at most a minute.
func TestAHundredThousandHosts(t *testing.T) {
	began := used(t)
	r := simulate.Run(simulate.Params{Hosts: 100_000, Seed: 7, Regions: 8})
	if r.Healthy != 100_000 || len(r.Broken) > 0 {
		t.Errorf("%d of 100,000 hosts are healthy: %q", r.Healthy, r.Broken)
	}
	if took := used(t) - began; took > time.Minute {
		t.Errorf("the simulation took %s", took)
	}
}
