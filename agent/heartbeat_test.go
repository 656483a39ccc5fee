package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestUnchangedRunUploadsNothing checks that such a run makes one request, and once per reports.heartbeat one more,
// which renews the host's record. A run that finds a change on the host uploads its report.
func TestUnchangedRunUploadsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UploadReports, l.Config.Heartbeat = true, 30*time.Minute
	began := time.Now()
	at := began
	l.Now = func() time.Time { return at }
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	tick := func() string {
		t.Helper()
		before := l.stored()
		log := l.watched()
		r := l.expect(exit.OK)
		for _, note := range r.Notes {
			t.Errorf("the run has the note %s", note)
		}
		if after := l.stored(); len(log.Requests()) <= 2 && !slices.Equal(after, before) {
			t.Errorf("the store has %q, and had %q before", after, before)
		}
		var ops []string
		for _, r := range log.Requests() {
			ops = append(ops, string(r.Op)+" "+strings.SplitN(r.Key, "/", 2)[0])
		}
		return strings.Join(ops, ", ")
	}
	const asks, beats = "get metadata", "get metadata, put fleet"
	for i, want := range []string{asks, asks, asks, asks, asks, beats, asks, asks, asks, asks, asks, beats} {
		at = began.Add(time.Duration(i+1) * 5 * time.Minute)
		if got := tick(); got != want {
			t.Errorf("after %s the run makes the requests %s, want %s", at.Sub(began), got, want)
		}
	}
	if err := l.Hold("a person looks at it"); err != nil {
		t.Fatal(err)
	}
	if got := tick(); !strings.Contains(got, "put reports") || !strings.Contains(got, "put fleet") {
		t.Errorf("the run on a held host makes the requests %s", got)
	}
	if got := tick(); got != asks {
		t.Errorf("the next run makes the requests %s", got)
	}
	ref := artifact.Ref{Project: "myapp", Channel: "testing"}
	all, err := fleet.Followers(t.Context(), l.repo.Store, hostkey.List, ref, time.Now().Add(-time.Minute))
	if err != nil || len(all) != 1 {
		t.Errorf("followers of %s are %+v, %v", ref, all, err)
	}
}

// stored returns the names of all objects of the store.
func (l *lab) stored() (keys []string) {
	for info, err := range l.repo.Store.List(l.t.Context(), "") {
		if err != nil {
			l.t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}
