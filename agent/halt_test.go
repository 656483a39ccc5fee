package agent_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// halting returns a rollout of a release that fails on every host: two hosts recorded failures, a third host the halt,
// and a fourth host has read it. backup is the content of the store before the first host ran.
func halting(t *testing.T) (f *rolling, wave []*rollHost, backup map[string][]byte) {
	t.Helper()
	plan := twoWaves()
	plan.Waves, _ = plans.ParseWaves("80%:1h,100%")
	plan.Halt = plans.Halt{Hosts: 2}
	f = newRolling(t, 10, plan)
	f.start("2-broken", "1")
	backup = f.objects()
	wave = f.inOrder()[0]
	for _, h := range wave[:2] {
		f.run(h, exit.RolledBack)
	}
	noted(t, f.run(wave[2], exit.OK), "it failed on 2 of 2 hosts")
	noted(t, f.run(wave[3], exit.OK), "the rollout is halted")
	return f, wave, backup
}

// objects returns the objects of the store.
func (f *rolling) objects() map[string][]byte {
	f.t.Helper()
	all := map[string][]byte{}
	for info, err := range f.store.Store.List(f.t.Context(), "") {
		if err != nil {
			f.t.Fatal(err)
		}
		body, _, err := f.store.Store.Get(f.t.Context(), info.Key, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		data, err := io.ReadAll(body)
		if err != nil || body.Close() != nil {
			f.t.Fatal(err)
		}
		all[info.Key] = data
	}
	return all
}

// restore replaces the content of the store by a backup.
func (f *rolling) restore(backup map[string][]byte) {
	f.t.Helper()
	for key := range f.objects() {
		if err := f.store.Store.Delete(f.t.Context(), key); err != nil {
			f.t.Fatal(err)
		}
	}
	for key, data := range backup {
		if _, err := f.store.Store.Put(f.t.Context(), key, bytes.NewReader(data), int64(len(data)),
			store.Condition{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// below counts the objects of rollouts of a kind.
func (f *rolling) below(kind string) (n int) {
	f.t.Helper()
	for key := range f.objects() {
		if about(key) && strings.Contains(key, "/"+kind+"/") {
			n++
		}
	}
	return n
}

// recorded reports whether the store has a record of a host with a text.
func (f *rolling) recorded(h *rollHost, text string) bool {
	for key, data := range f.objects() {
		if strings.HasPrefix(key, "fleet/") && strings.Contains(key, "/"+h.name+".") && bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestHaltHoldsWhenTheStoreIsRestoredFromABackup(t *testing.T) {
	t.Parallel()
	f, wave, backup := halting(t)
	f.restore(backup)
	noted(t, f.run(wave[3], exit.OK), "the rollout is halted") // and the host records it again
	noted(t, f.run(wave[2], exit.OK), "the rollout is halted")
	for _, h := range wave[2:4] {
		f.runs(h, "1")
	}
	if n := f.below("halts"); n != 1 {
		t.Errorf("the halt was recorded again %d times", n)
	}
	noted(t, f.run(wave[4], exit.OK), "the rollout is halted")
	f.runs(wave[4], "1")

	// The hosts with failures record them again under the same names.
	for range 2 {
		for _, h := range wave[:2] {
			f.run(h, exit.OK)
		}
	}
	if n := f.below("results"); n != 2 {
		t.Errorf("%d results were recorded again", n)
	}
	// After a resume the halt does not hold any more, and no earlier failure is recorded again.
	f.store.now = f.store.now.Add(10 * time.Second)
	f.move(func(s *plans.Start) { s.Resumed = f.store.now })
	f.store.now = f.store.now.Add(10 * time.Second)
	f.restoreRollout(backup)
	f.run(wave[0], exit.OK)
	if n := f.below("results"); n != 0 {
		t.Errorf("after a resume %d earlier failures were recorded again", n)
	}
	f.run(wave[3], exit.RolledBack)
}

// restoreRollout removes the objects of rollouts that a backup lacks.
func (f *rolling) restoreRollout(backup map[string][]byte) {
	f.t.Helper()
	for key := range f.objects() {
		if _, kept := backup[key]; about(key) && !kept {
			if err := f.store.Store.Delete(f.t.Context(), key); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

// unlisting is a store whose listings of rollouts are empty, or only have names that contain a text.
type unlisting struct {
	store.Store
	but string
}

func (s unlisting) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			shown := err != nil || !about(info.Key) || s.but != "" && strings.Contains(info.Key, s.but)
			if shown && !yield(info, err) {
				return
			}
		}
	}
}

func TestHaltHoldsWhenListingsAreNotComplete(t *testing.T) {
	t.Parallel()
	f, wave, _ := halting(t)
	for _, shows := range []struct{ but, seen, unseen string }{
		{"", "lacks roster.json", "lacks roster.json"},
		{"results/", "lacks roster.json", "lacks roster.json"},
		{"roster.json", "the rollout is halted", ""},
	} {
		for _, h := range wave {
			h.OpenStore = func(string) (store.Store, error) { return unlisting{f.store, shows.but}, nil }
		}
		noted(t, f.run(wave[2], exit.OK), shows.seen)
		f.runs(wave[2], "1")
		if shows.unseen != "" { // by a host that has not read the halt
			noted(t, f.run(wave[5], exit.OK), shows.unseen)
			f.runs(wave[5], "1")
			if !f.recorded(wave[5], `"unseeing":true`) {
				t.Error("the record of the host does not say that it cannot see the rollout")
			}
		}
	}
}

// TestHostsRollBackAnAbortedReleaseBeforeTheNextRollout checks a host that has not run since an abort: it leaves the
// aborted release before its turn for the next one.
func TestHostsRollBackAnAbortedReleaseBeforeTheNextRollout(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 6, twoWaves())
	f.start("2", "1", func(s *plans.Start) { s.Urgent = true })
	for _, h := range f.hosts {
		f.run(h, exit.OK)
		f.runs(h, "2")
	}
	left := f.digests["2"]
	f.abort()
	f.start("3", "1", func(s *plans.Start) { s.Left = []string{string(left)} })
	waves := f.inOrder()
	first, later := waves[0][0], waves[1][0]
	r := f.run(later, exit.OK)
	f.runs(later, "1")
	noted(t, r, "was aborted; this host goes back to 1")
	noted(t, r, "waits for the turn of this host")
	if s, err := later.Status(); err != nil || len(s.Quarantined) != 0 {
		t.Errorf("after the host left the aborted release: %+v, %v", s.Quarantined, err)
	}
	f.run(first, exit.OK)
	f.runs(first, "3")
	f.store.now = f.store.now.Add(2 * time.Hour)
	for _, h := range waves[0] {
		f.run(h, exit.OK)
	}
	f.store.now = f.store.now.Add(2 * time.Hour)
	f.run(later, exit.OK)
	f.runs(later, "3")
}

// TestHostLeavesAnAbortedReleaseWhenTheNextOneFails checks that a host that has the release of an aborted rollout, and
// on which the next release fails, does not keep the aborted one.
func TestHostLeavesAnAbortedReleaseWhenTheNextOneFails(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 2, twoWaves())
	h := f.hosts[0]
	f.start("2", "1", func(s *plans.Start) { s.Urgent = true })
	f.run(h, exit.OK)
	f.runs(h, "2")
	left := f.digests["2"]
	f.abort()
	f.start("3-broken", "1", func(s *plans.Start) { s.Urgent, s.Left = true, []string{string(left)} })
	f.run(h, exit.RolledBack)
	noted(t, f.run(h, exit.OK), "was aborted; this host goes back to 1")
	f.runs(h, "1")
	f.run(h, exit.OK)
	f.runs(h, "1")
	s, err := h.Status()
	if err != nil || len(s.Quarantined) != 1 || s.Quarantined[0].Release.Version != "3-broken" {
		t.Errorf("in quarantine: %+v, %v", s.Quarantined, err)
	}
}

func TestHeldHostRefusesDeployAhead(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 2, twoWaves())
	f.start("2", "1")
	h := f.hosts[0]
	if err := h.Hold(""); err != nil {
		t.Fatal(err)
	}
	_, err := f.try(h, agent.Given{Ahead: true}, false)
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "this host is held") {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
	f.runs(h, "1")
}

// TestReplacedMachineNotesThatItsResultsDoNotCount checks the note of a new machine with the name of another one.
func TestReplacedMachineNotesThatItsResultsDoNotCount(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	f.start("2", "1")
	noted(t, f.run(f.newHost(f.hosts[0].name), exit.OK), "the rollout has another key for this host")
	f.run(f.hosts[0], exit.OK)
	if n := f.below("results"); n != 1 {
		t.Errorf("%d results, want that of the first machine", n)
	}
}
