package fleet_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// reporting is a host whose key is registered.
type reporting struct {
	hostrecord.Writer
	record hostrecord.Record
}

// newReporting registers a host and writes its record, which is healthy apart from flags.
func newReporting(t *testing.T, s store.Store, name string, flags hostrecord.Flags) reporting {
	t.Helper()
	key := hostKey(t)
	h := reporting{hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json"), Now: time.Now()},
		hostrecord.Record{Project: "myapp", Host: name, Run: "20260501T110000.000000", Sequence: 1, Outcome: "converged",
			Service: place("1", 1), Flags: flags}}
	if err := key.Register(t.Context(), s, hostkey.Registration{Host: name}); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(t.Context(), h.record, hostrecord.Detail{Error: name + " cannot list rollouts/"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // the store's clock orders what follows
	return h
}

// failure returns the key of a failure object that a host signed, which is not in the store afterwards.
func failure(t *testing.T, h reporting, as string) string {
	t.Helper()
	s := mem.New()
	w := h.Writer
	w.Store, w.File = s, filepath.Join(t.TempDir(), "record.json")
	if err := w.WriteFailure(t.Context(), "myapp", as, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), hostrecord.Prefix) {
		if err == nil {
			return info.Key
		}
	}
	t.Fatal("there is no failure object")
	return ""
}

// TestFailureObjectsOfOthersDoNotCount has a healthy host with failure objects that it did not write, also very many,
// and checks that its own one counts among them.
func TestFailureObjectsOfOthersDoNotCount(t *testing.T) {
	for name, c := range map[string]func(h, other reporting) []string{
		"signed by another host": func(_, other reporting) []string { return []string{failure(t, other, "a")} },
		"copied from another host": func(_, other reporting) []string {
			return []string{strings.Replace(failure(t, other, "b"), "/b/", "/a/", 1)}
		},
		"forged": func(h, _ reporting) []string {
			return []string{strings.Replace(failure(t, h, "a"), "failed,", "failed,A", 1)}
		},
		"without a signature": func(reporting, reporting) []string { return []string{"fleet/myapp/a/failed,.json"} },
		"flooded": func(h, _ reporting) (all []string) {
			own := failure(t, h, "a")
			for i := range 300 {
				all = append(all, own[:len(own)-len("0000.json")]+fmt.Sprintf("%04d.json", i))
			}
			return all
		},
	} {
		s := mem.New()
		h, other := newReporting(t, s, "a", hostrecord.Flags{}), newReporting(t, s, "b", hostrecord.Flags{})
		for _, object := range c(h, other) {
			if _, err := s.Put(t.Context(), object, strings.NewReader("{}"), 2, store.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []fleet.State{fleet.Healthy, fleet.Failed} {
			if want == fleet.Failed {
				full := hostrecord.Detail{Error: "the disk is full"}
				if err := h.WriteFailure(t.Context(), "myapp", "a", full); err != nil {
					t.Fatal(err)
				}
			}
			v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Hosts) != 2 || v.Hosts[0].State != want || !v.Hosts[0].Signed || v.Hosts[1].State != fleet.Healthy {
				t.Errorf("%s: the hosts are %+v, want the first one %s", name, v.Hosts, want)
			}
			if (v.Flooded["a"] > 0) != (name == "flooded") {
				t.Errorf("%s: %d objects are reported", name, v.Flooded["a"])
			}
		}
	}
}

// TestRunThatCouldNotBeginIsOfNoRelease checks a host that has release 1 and whose newest run could not begin: it is
// failed, with neither the release nor the ID of the run before.
func TestRunThatCouldNotBeginIsOfNoRelease(t *testing.T) {
	s := mem.New()
	h := newReporting(t, s, "a", hostrecord.Flags{})
	if err := h.WriteFailure(t.Context(), "myapp", "a", hostrecord.Detail{Error: "the disk is full"}); err != nil {
		t.Fatal(err)
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(v.Rows) != 1 || v.Rows[0].Failed != 0 || v.Rows[0].Healthy != 0 || v.Rows[0].Hosts != 1 {
		t.Errorf("the rows are %+v", v.Rows)
	}
	if a := v.Attention; len(a) != 1 || a[0].What != string(fleet.Failed) || a[0].Version != "" ||
		a[0].Why != "the disk is full" {
		t.Errorf("what needs attention is %+v", a)
	}
	data, err := json.Marshal(v.Hosts[0])
	if text := string(data); err != nil || strings.Contains(text, h.record.Run) ||
		!strings.Contains(text, `"could_not_begin":true`) {
		t.Errorf("the host is %s, %v", text, err)
	}
}

// TestFailuresOfBaseAreOfBase checks hosts on which base 8 failed in the same run as service 2, and as the only new
// release: neither the row nor the entry of the service has them.
func TestFailuresOfBaseAreOfBase(t *testing.T) {
	s := mem.New()
	for name, r := range map[string]hostrecord.Record{
		"a": {Outcome: "rolled-back", Exit: 7, Wanted: place("2", 2), Flags: hostrecord.Flags{OfBase: true}},
		"b": {Outcome: "rolled-back", Exit: 7}, // of an older agent
		"c": {Outcome: "converged", Flags: hostrecord.Flags{Quarantined: true, OfBase: true}},
	} {
		r.Project, r.Host, r.Run, r.Sequence = "myapp", name, "20260501T110000.000000", 1
		r.Service, r.Base, r.WantedBase = place("1", 1), place("7", 7), place("8", 8)
		w := hostrecord.Writer{Store: s, Key: hostKey(t), File: filepath.Join(t.TempDir(), "record.json"), Now: time.Now()}
		if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range v.Rows {
		if bad := r.RolledBack+r.Quarantined > 0; bad != (r.Project == "base" && r.Version == "8") {
			t.Errorf("a row is %+v", r)
		}
	}
	found := 0
	for _, a := range v.Attention {
		if a.What != fleet.Unregistered {
			found++
			if a.Project != "base" || a.Version != "8" || a.Channel != "production" {
				t.Errorf("an entry is %+v", a)
			}
		}
	}
	if found != 2 {
		t.Errorf("what needs attention is %+v", v.Attention)
	}
}

// TestHostsAreCountedForWhatIsAtFault checks a host with both base 8 and service 2 in quarantine, which counts for
// both, and one on which a converge of base 7 and service 1 failed in a state of base. The error in the record of the
// first is that of the service.
func TestHostsAreCountedForWhatIsAtFault(t *testing.T) {
	s := mem.New()
	for name, r := range map[string]hostrecord.Record{
		"both": {Outcome: "converged", Wanted: place("2", 2), WantedBase: place("8", 8),
			Flags: hostrecord.Flags{Quarantined: true, AlsoBase: true}},
		"later": {Outcome: "failed", Exit: 3, Flags: hostrecord.Flags{OfBase: true}},
	} {
		r.Project, r.Host, r.Run, r.Sequence = "myapp", name, "20260501T110000.000000", 1
		r.Service, r.Base = place("1", 1), place("7", 7)
		w := hostrecord.Writer{Store: s, Key: hostKey(t), File: filepath.Join(t.TempDir(), "record.json"), Now: time.Now()}
		if err := w.Write(t.Context(), r, hostrecord.Detail{Error: "a state of the service fails"}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.Rows {
		if r.Failed+r.RolledBack+r.Quarantined > 0 {
			got = append(got, fmt.Sprintf("%s %s: %d failed, %d quarantined", r.Project, r.Version, r.Failed,
				r.Quarantined))
		}
	}
	for _, a := range v.Attention {
		if a.What != fleet.Unregistered {
			got = append(got, fmt.Sprintf("%s: %s %s on %s", a.What, a.Project, a.Version, strings.Join(a.Hosts, " ")))
		}
	}
	want := []string{"base 8: 0 failed, 1 quarantined", "base 7: 1 failed, 0 quarantined",
		"myapp 2: 0 failed, 1 quarantined", "failed: base 7 on later", "quarantined: base 8 on both",
		"quarantined: myapp 2 on both"}
	if !slices.Equal(got, want) {
		t.Errorf("the fleet is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := v.Explain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, a := range v.Attention {
		if a.What == "quarantined" && (a.Why == "") != (a.Project == "base") {
			t.Errorf("the error of the service is shown for %s: %q", a.Project, a.Why)
		}
	}
}

// TestHostsThatCannotSeeTheirRolloutAreListed checks that they are listed with the reason of one of them and what to
// do, although they are healthy.
func TestHostsThatCannotSeeTheirRolloutAreListed(t *testing.T) {
	s := mem.New()
	newReporting(t, s, "a", hostrecord.Flags{Unseeing: true})
	newReporting(t, s, "b", hostrecord.Flags{})
	newReporting(t, s, "c", hostrecord.Flags{Unseeing: true})
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(v.Attention) != 1 || v.Attention[0].What != fleet.NoEvidence ||
		strings.Join(v.Attention[0].Hosts, " ") != "a c" ||
		v.Attention[0].Why != "on a: a cannot list rollouts/\non c: c cannot list rollouts/" ||
		!strings.Contains(v.Attention[0].Hint, "docs/buckets.md") {
		t.Errorf("what needs attention is %+v", v.Attention)
	}
	if v.Hosts[0].State != fleet.Healthy {
		t.Errorf("the host is %s", v.Hosts[0].State)
	}
}
