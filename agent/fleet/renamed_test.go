package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// TestRenamedAndAheadHosts checks that a host whose key was registered later for another name counts as renamed and not
// as one without a record, and that the hint of a host with a clock that is a day ahead is about that clock.
func TestRenamedAndAheadHosts(t *testing.T) {
	s := mem.New()
	k, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"old", "new"} {
		if err := k.Register(t.Context(), s, hostkey.Registration{Host: host}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	w := hostrecord.Writer{Store: s, Key: k, File: filepath.Join(t.TempDir(), "record.json")}
	r := hostrecord.Record{Project: "myapp", Host: "new", Sequence: 1, Outcome: "converged",
		Run: time.Now().Add(24 * time.Hour).UTC().Format(hostrecord.RunTime)}
	if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	look := func(now time.Time, want ...string) {
		t.Helper()
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: now, SilentAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range v.Attention {
			got = append(got, a.What+" "+strings.Join(a.Hosts, " ")+": "+a.Hint)
		}
		if len(got) != len(want) {
			t.Fatalf("what needs a person is\n%s", strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
	const (
		ahead   = "run in the future new: look at the clock of the host (timedatectl), which was 24h0m0s ahead"
		renamed = "renamed old: new has its key: if the host has that name for good: corpus host forget old"
	)
	look(time.Now(), ahead, renamed)
	const silent = "silent new: its record has a time in the future: look at the clock"
	look(time.Now().Add(-48*time.Hour), ahead, silent, renamed)
}

// TestRegistrationOfAnotherHostsKeyRenamesNoHost checks that an object that registers the public key of a host for
// another name does not rename the host unless that key signed the object.
func TestRegistrationOfAnotherHostsKeyRenamesNoHost(t *testing.T) {
	s := mem.New()
	victim, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Register(t.Context(), s, hostkey.Registration{Host: "victim"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond)
	thief := newReporting(t, s, "thief", hostrecord.Flags{})
	place := hostkey.Place("thief", victim.Public())
	forged, err := thief.Key.Seal(place, []byte(`{"host":"thief","key":"`+string(victim.Public())+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), place, bytes.NewReader(forged), int64(len(forged)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, a := range v.Attention {
		found = found || a.What == fleet.NoRecord && a.Hosts[0] == "victim"
		if a.What == fleet.Renamed {
			t.Errorf("a host was renamed by an object that its key did not sign: %+v", a)
		}
	}
	if !found {
		t.Errorf("the host without a record is not named: %+v", v.Attention)
	}
}

// TestRunThatReachedNoReleaseIsAFailureOfNone checks that a host that did not reach the store, or refused it, is a
// failure of no version, and that a clock that is very far ahead is named by its date.
func TestRunThatReachedNoReleaseIsAFailureOfNone(t *testing.T) {
	s := mem.New()
	for i, code := range []int{exit.Unreachable, exit.Refused, exit.Failed} {
		h := newReporting(t, s, string(rune('a'+i)), hostrecord.Flags{})
		h.record.Outcome, h.record.Exit, h.record.Sequence = "failed", code, 2
		if code == exit.Failed {
			h.record.Run = "99991231T000000.000000"
		}
		if err := h.Write(t.Context(), h.record, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil || len(v.Rows) != 1 || v.Rows[0].Failed != 1 {
		t.Fatalf("the rows are %+v, %v, want one failure", v.Rows, err)
	}
	for _, a := range v.Attention {
		if a.What == string(fleet.Failed) && (a.Version == "") != (len(a.Hosts) == 2) {
			t.Errorf("the entry is %+v", a)
		}
		if a.What == fleet.Ahead && !strings.Contains(a.Hint, "which was at 9999-12-31;") {
			t.Errorf("the hint is %q", a.Hint)
		}
	}
}

// TestForgottenHostsAreNoFollowers checks that a host of which only signed reports are left is none, and that hosts
// with a record, with unsigned reports, or in a store in which no host has a key are.
func TestForgottenHostsAreNoFollowers(t *testing.T) {
	s, at := mem.New(), time.Now().UTC()
	ref := artifact.Ref{Project: "myapp", Channel: "testing"}
	report := func(host string, k *hostkey.Key) {
		t.Helper()
		r := fleet.Report{ID: "run", Host: host, Ended: at, Service: "myapp", Instance: "testing",
			Channels: []artifact.Ref{ref}}
		if k == nil {
			put(t, s, key(host, at), r)
			return
		}
		data, err := json.Marshal(r)
		if err == nil {
			data, err = k.Seal(key(host, at), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, key(host, at), json.RawMessage(data))
	}
	followers := func(want string) {
		t.Helper()
		found, err := fleet.Followers(t.Context(), s, hostkey.List, ref, at.Add(-time.Hour))
		agents, err2 := fleet.Agents(t.Context(), s, at.Add(-time.Hour))
		var names, running []string
		for _, f := range found {
			names = append(names, f.Host)
		}
		for _, a := range agents {
			running = append(running, a.Host)
		}
		if got := strings.Join(names, " "); got != want || strings.Join(running, " ") != want || err != nil || err2 != nil {
			t.Errorf("the followers are %q, and the agents those of %q, want %q: %v, %v", got, running, want, err, err2)
		}
	}
	gone := hostKey(t)
	report("gone", &gone)
	report("older", nil)
	followers("gone older")
	recorded := newReporting(t, s, "recorded", hostrecord.Flags{})
	report("recorded", &recorded.Key)
	followers("older recorded")
	if err := s.Delete(t.Context(), hostkey.Place("recorded", recorded.Key.Public())); err != nil {
		t.Fatal(err)
	}
	if err := gone.Register(t.Context(), s, hostkey.Registration{Host: "other"}); err != nil {
		t.Fatal(err)
	}
	followers("older recorded")
}

// countingGets counts the objects that are read.
type countingGets struct {
	store.Store
	n int
}

func (c *countingGets) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	c.n++
	return c.Store.Get(ctx, key, from)
}

// TestRequestsForRenamedHostsAreBounded checks that many registrations of one key for many names cost a view a bounded
// number of requests, also for hosts of rollouts that are not in the store any more.
func TestRequestsForRenamedHostsAreBounded(t *testing.T) {
	s, k := &countingGets{Store: mem.New()}, hostKey(t)
	for i := range 60 {
		place := hostkey.Place(fmt.Sprintf("h%02d", i), k.Public())
		if _, err := s.Put(t.Context(), place, strings.NewReader("{}"), 2, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if now, err := v.Renamed(t.Context(), fmt.Sprintf("gone%02d", i), k.Public()); err != nil || now != "" {
			t.Fatal(now, err)
		}
	}
	if s.n == 0 || s.n > 200 {
		t.Errorf("the view took %d requests, want at most 200", s.n)
	}
}
