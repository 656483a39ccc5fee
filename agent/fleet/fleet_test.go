package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func digest(n byte) artifact.Digest { return artifact.NewDigest([32]byte{n}) }

func pair(n byte) *ledger.Pair {
	return &ledger.Pair{
		Base:    &artifact.Release{Project: artifact.Base, Version: "1", Digest: digest(100)},
		Service: artifact.Release{Project: "myapp", Version: fmt.Sprint(n), Digest: digest(n)},
	}
}

func proven(n byte, run string, at time.Time) *ledger.Proven {
	return &ledger.Proven{Pair: *pair(n), Run: run, At: at}
}

func quarantined(n byte) []fleet.QuarantinedRelease {
	return []fleet.QuarantinedRelease{{Release: pair(n).Service, Reason: "rolled back by hand", Run: "R"}}
}

func put(t *testing.T, s store.Store, key string, content any) {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func key(host string, at time.Time) string {
	return "reports/myapp/" + host + "/" + at.Format("20060102T150405") + ".000000.json"
}

// TestHealthyHostsAttestARelease reads the results of the hosts of myapp/testing for release 2 in the last week.
func TestHealthyHostsAttestARelease(t *testing.T) {
	testing_ := []artifact.Ref{{Project: "base", Channel: "production"}, {Project: "myapp", Channel: "testing"}}
	good := fleet.Report{ID: "run", Host: "h", Ended: now.Add(-time.Hour), Exit: exit.OK, Channels: testing_, To: pair(2),
		Left: pair(2), Proves: true, Proven: proven(2, "deploy", now.Add(-time.Hour))}
	with := func(edit func(*fleet.Report)) fleet.Report {
		r := good
		p := *good.Proven
		r.Proven = &p
		edit(&r)
		return r
	}
	for name, c := range map[string]struct {
		reports []fleet.Report // oldest first
		says    string         // healthy, the failure, or "" for no result
	}{
		"healthy":         {[]fleet.Report{good}, "healthy"},
		"another release": {[]fleet.Report{with(func(r *fleet.Report) { r.To, r.Left = pair(1), pair(1) })}, ""},
		"another channel": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Channels = []artifact.Ref{{Project: "myapp", Channel: "production"}}
		})}, ""},
		"another project's channel": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Channels = []artifact.Ref{{Project: "base", Channel: "testing"}}
		})}, ""},
		"a dry run":           {[]fleet.Report{with(func(r *fleet.Report) { r.Test = true })}, ""},
		"another host's word": {[]fleet.Report{with(func(r *fleet.Report) { r.Host = "other" })}, ""},
		"too old":             {[]fleet.Report{with(func(r *fleet.Report) { r.Ended = now.AddDate(0, 0, -8) })}, ""},
		"of the future":       {[]fleet.Report{with(func(r *fleet.Report) { r.Ended = now.Add(time.Minute) })}, ""},
		"pushed, not signed": {[]fleet.Report{with(func(r *fleet.Report) {
			p := pair(2)
			p.Service.Local = "push"
			r.Left = p
		})}, ""},
		"rolled back": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Exit, r.Left, r.Outcome, r.Error = exit.RolledBack, pair(1), "rolled back", "health"
		})}, "rolled back: health"},
		"rolled back to it": {[]fleet.Report{with(func(r *fleet.Report) { r.Exit, r.To = exit.RolledBack, pair(3) })}, ""},
		"healthy, then broken": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.Exit, r.Outcome, r.To = exit.Failed, "failed", nil
		})}, "failed"},
		"broken, then healthy": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Exit, r.Left = exit.RolledBack, pair(1)
		}), good}, "healthy"},
		"rolled back, then healthy with the earlier release": {[]fleet.Report{
			with(func(r *fleet.Report) { r.Exit, r.Outcome, r.Left = exit.RolledBack, "rolled back", pair(1) }),
			with(func(r *fleet.Report) { r.Left = pair(1) })}, "rolled back"},
		"healthy below another root, by an older proof": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Proven.OtherRoot = true
		})}, "healthy elsewhere"},
		"healthy below another root": {[]fleet.Report{with(func(r *fleet.Report) {
			r.OtherRoot = true
		})}, "healthy elsewhere"},
		"failed, and later healthy, below another root": {[]fleet.Report{with(func(r *fleet.Report) {
			r.OtherRoot, r.Exit = true, exit.Failed
		}),
			with(func(r *fleet.Report) { r.OtherRoot = true })}, "healthy elsewhere"},
		"healthy, and later failed below another root": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.OtherRoot, r.Exit = true, exit.Failed
		})}, "healthy"},
		"healthy, and later below another root": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.OtherRoot = true
		})}, "healthy"},
		"broken, and later healthy below another root": {[]fleet.Report{
			with(func(r *fleet.Report) { r.Exit, r.Outcome, r.Left = exit.RolledBack, "rolled back", pair(1) }),
			with(func(r *fleet.Report) { r.OtherRoot = true })}, "rolled back"},
		"a tick without a proof": {[]fleet.Report{with(func(r *fleet.Report) { r.Proven = nil })}, ""},
		"proof of another release": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Proven = proven(1, "deploy", now)
		})}, ""},
		"the proof is too old": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Proven.At = now.AddDate(0, 0, -8)
		})}, ""},
		"healthy, then its unit crashes": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.Unserved = []string{"app.service ended 3 times"}
		})}, "app.service ended 3 times"},
		"healthy, then rolled back by hand": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.Command, r.From, r.Leaves, r.To, r.Left, r.Proven = "rollback", pair(2), pair(2), pair(1), pair(1),
				proven(1, "rollback", now)
		})}, "rolled back by hand"},
		"rolled back by hand by an older agent": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.Command, r.From, r.To, r.Left, r.Proves, r.Proven = "rollback", pair(2), pair(1), pair(1), false, nil
		})}, "rolled back by hand"},
		"a tick long after a rollback": {[]fleet.Report{with(func(r *fleet.Report) {
			r.To, r.Left, r.Quarantined = pair(1), pair(1), quarantined(2)
		})}, "quarantined since run R: rolled back by hand"},
		"deployed by an older agent": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Proves, r.Proven, r.Stages = false, nil, []fleet.Stage{{Name: "release"}}
		})}, "healthy"},
		"a tick of an older agent": {[]fleet.Report{with(func(r *fleet.Report) {
			r.Proves, r.Proven = false, nil
		})}, ""},
		"healthy, then without the store": {[]fleet.Report{good, with(func(r *fleet.Report) {
			r.Exit = exit.Unreachable
		})}, "healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			for i, r := range c.reports {
				put(t, s, key("h", now.Add(time.Duration(i-10)*time.Minute)), r)
			}
			put(t, s, "reports/myapp/nonsense/20260501T110000.000000.json", "no report")
			put(t, s, "reports/myapp/readme.txt", "no report")
			answer, err := fleet.Ask(t.Context(), s, hostkey.List,
				fleet.Question{Channel: artifact.Ref{Project: "myapp", Channel: "testing"},
					Digest: digest(2), Since: now.AddDate(0, 0, -7), Until: now})
			if err != nil {
				t.Fatal(err)
			}
			verdict := ""
			for _, w := range answer.Results {
				if verdict = w.Why; w.Healthy {
					verdict = "healthy"
				}
				if w.OtherRoot {
					verdict += " elsewhere"
				}
			}
			if verdict != c.says || len(answer.Results) > 1 {
				t.Errorf("the results are %+v, want %q", answer.Results, c.says)
			}
		})
	}
}

func TestHostsOfAllProjectsAttestBase(t *testing.T) {
	s := mem.New()
	for _, host := range []string{"b", "a"} {
		put(t, s, "reports/"+host+"app/"+host+"/20260501T110000.000000.json", fleet.Report{
			Host: host, Ended: now.Add(-time.Hour), Channels: []artifact.Ref{{Project: "base", Channel: "production"}},
			Left: pair(1), Proves: true, Proven: proven(1, "deploy", now.Add(-time.Hour))})
	}
	answer, err := fleet.Ask(t.Context(), s, hostkey.List,
		fleet.Question{Channel: artifact.Ref{Project: "base", Channel: "production"},
			Digest: digest(100), Since: now.AddDate(0, 0, -7), Until: now})
	hosts := []string{}
	for _, w := range answer.Results {
		hosts = append(hosts, w.Host)
	}
	if err != nil || !slices.Equal(hosts, []string{"a", "b"}) {
		t.Errorf("hosts with results for base: %v, %v", hosts, err)
	}
}

func TestStoreThatIsOutOfReachIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := mem.New()
	put(t, s, key("h", now), fleet.Report{Host: "h"})
	cancel()
	if _, err := fleet.Ask(ctx, s, hostkey.List,
		fleet.Question{Channel: artifact.Ref{Project: "myapp", Channel: "testing"},
			Until: now}); err == nil || !strings.Contains(err.Error(), "reading the reports of hosts") {
		t.Errorf("error is %v", err)
	}
}

// later is a store that reports later times for some of its objects.
type later struct {
	store.Store
	at map[string]time.Time // by prefix
}

func (s later) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			for begin, at := range s.at {
				if strings.HasPrefix(info.Key, begin) {
					info.Modified = at
				}
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestHostWithRenewedRecordIsPresent checks that a host with an old report and a renewed record is listed, and that one
// whose record is old is not.
func TestHostWithRenewedRecordIsPresent(t *testing.T) {
	s, now := mem.New(), time.Now().UTC()
	ref := artifact.Ref{Project: "myapp", Channel: "testing"}
	for _, host := range []string{"calm", "gone"} {
		at := now.AddDate(0, -6, 0)
		put(t, s, key(host, at), fleet.Report{ID: at.Format("20060102T150405.000000"), Host: host, Ended: at, Agent: "1.0",
			Form: 2, Service: "myapp", Instance: "testing", Channels: []artifact.Ref{ref}})
		k, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
		if err != nil {
			t.Fatal(err)
		}
		w := hostrecord.Writer{Store: s, URL: "mem:", Key: k, File: filepath.Join(t.TempDir(), "record.json"), Now: at}
		r := hostrecord.Record{Project: "myapp", Host: host, Run: at.Format("20060102T150405.000000"), Outcome: "converged",
			Form: 2}
		if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := later{s, map[string]time.Time{"fleet/myapp/calm/": now, "fleet/myapp/gone/": now.AddDate(0, -6, 0),
		"reports/": now.AddDate(0, -6, 0)}}
	agents, err := fleet.Agents(t.Context(), seen, now.AddDate(0, -3, 0))
	if err != nil || len(agents) != 1 || agents[0].Host != "calm" || agents[0].Form != 2 || !agents[0].At.Equal(now) {
		t.Errorf("agents are %+v, %v", agents, err)
	}
	hosts, err := fleet.Followers(t.Context(), seen, hostkey.List, ref, now.AddDate(0, 0, -1))
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Host
	}
	if err != nil || !slices.Equal(names, []string{"calm"}) {
		t.Errorf("followers are %+v, %v", hosts, err)
	}
}
