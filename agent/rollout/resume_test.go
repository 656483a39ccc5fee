package rollout_test

import (
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/rollout"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// TestFailuresAfterAResumeCountWhateverTheClock checks that failures before a resume are forgiven and those after it
// stop the rollout, also if the store's clock was ahead before the resume or is behind after it.
func TestFailuresAfterAResumeCountWhateverTheClock(t *testing.T) {
	for name, c := range map[string]struct{ before, after time.Duration }{
		"a correct clock":                         {0, 0},
		"ten minutes ahead until the resume":      {10 * time.Minute, 0},
		"a day ahead until the resume":            {24 * time.Hour, 0},
		"a day behind after the resume":           {0, -24 * time.Hour},
		"ahead until the resume and behind later": {time.Hour, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFleet(t, 40), newTimed()
			f.Plan.Halt = plans.Halt{Hosts: 2}
			right := s.now
			hosts := f.inWave(2)
			fail := func(host string, at time.Time) {
				t.Helper()
				s.now = at
				run := rollout.FailureRun(runID, f.forgiven())
				if err := f.Record(t.Context(), s, f.keys[host], host, rollout.RolledBack, run); err != nil {
					t.Fatal(err)
				}
			}
			stops := func(want plans.Reason) {
				t.Helper()
				if v := f.Decide(place(hosts[4]), f.read(t, s), s.now); v.Reason != want {
					t.Errorf("the decision is %+v, want %s", v, want)
				}
			}
			fail(hosts[0], right.Add(c.before))
			fail(hosts[1], right.Add(c.before))
			stops(plans.Stops)
			f.Start.Resumed, f.Start.Skipped = right.Add(max(c.before, 0)+time.Second), 2
			s.now = right.Add(2 * time.Second)
			stops(plans.Turn)
			fail(hosts[2], right.Add(c.after+3*time.Second))
			stops(plans.Turn)
			fail(hosts[3], right.Add(c.after+4*time.Second))
			stops(plans.Stops)
			for _, said := range f.read(t, s).Results {
				if said.RunID() != runID {
					t.Errorf("the run of a failure is %q, want %q", said.RunID(), runID)
				}
			}
		})
	}
}

// TestHaltsBindByTheResumeThatTheyName checks that a halt of the present epoch stops the rollout although its object is
// older than the resume by the store's clock, which was ahead when a person resumed, and that a later resume ends it.
func TestHaltsBindByTheResumeThatTheyName(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a correct clock": 0, "an hour ahead": time.Hour,
		"a day ahead": 24 * time.Hour} {
		f, s := newFleet(t, 40), newTimed()
		finder, other := f.inWave(0)[0], f.inWave(1)[0]
		f.Start.Resumed, f.Start.Urgent = s.now.Add(ahead), true
		s.now = s.now.Add(time.Minute) // the clock of the store is correct again
		if err := f.RecordHalt(t.Context(), s, f.keys[finder], finder, runID, f.read(t, s), s.now); err != nil {
			t.Fatal(err)
		}
		e := f.read(t, s)
		if v := f.Decide(place(other), e, s.now); v.Reason != plans.Halted || len(e.Halts) != 1 || len(e.Ignored) != 0 {
			t.Errorf("%s: after a halt: %+v, ignored %+v", name, v, e.Ignored)
		}
		f.Start.Resumed = f.Start.Resumed.Add(time.Second)
		e = f.read(t, s)
		if v := f.Decide(place(other), e, s.now); !v.Take || len(e.Past) != 1 {
			t.Errorf("%s: after another resume: %+v, earlier halts %+v", name, v, e.Past)
		}
	}
}

func (f fleet) forgiven() int64 {
	if f.Start.Resumed.IsZero() {
		return 0
	}
	return f.Start.Resumed.Unix()
}

// TestResultOfTheFutureDelaysNoWave checks that a wave begins although a host named its run, and dated its object, in
// the future.
func TestResultOfTheFutureDelaysNoWave(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	f.Plan.Waves, _ = plans.ParseWaves("5%:1h,100%")
	f.Start = f.Plan.NewStart(rolloutID, release, began, f.Roster.Places())
	s.now = began.Add(100 * 24 * time.Hour)
	for _, host := range f.inWave(0) {
		if err := f.Record(t.Context(), s, f.keys[host], host, rollout.Healthy, "99991231T235959.999999"); err != nil {
			t.Fatal(err)
		}
	}
	next := place(f.inWave(1)[0])
	for _, c := range []struct {
		after time.Duration
		take  bool
	}{{59 * time.Minute, false}, {61 * time.Minute, true}} {
		s.now = began.Add(c.after)
		if v := f.Decide(next, f.read(t, s), s.now); v.Take != c.take {
			t.Errorf("after %v: %+v", c.after, v)
		}
	}
}
