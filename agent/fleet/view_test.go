package fleet_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func hostKey(t testing.TB) hostkey.Key {
	t.Helper()
	key, damaged, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return key
}

// bucket answers listings as S3 does, with a thousand keys each, and counts them.
type bucket struct {
	keys     []string // sorted
	requests atomic.Int64
}

type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	IsTruncated bool
	Next        string `xml:"NextContinuationToken,omitempty"`
	Contents    []listed
	Folders     []folder `xml:"CommonPrefixes"`
}

type folder struct{ Prefix string }

type listed struct {
	Key, LastModified, ETag string
	Size                    int
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	q := r.URL.Query()
	prefix := q.Get("prefix")
	from, _ := slices.BinarySearch(b.keys, prefix)
	if token := q.Get("continuation-token"); token != "" {
		from, _ = slices.BinarySearch(b.keys, token)
	}
	var out listing
	for i := from; i < len(b.keys) && strings.HasPrefix(b.keys[i], prefix); i++ {
		name, _, within := strings.Cut(b.keys[i][len(prefix):], "/")
		if name = prefix + name + "/"; within && q.Get("delimiter") == "/" && len(out.Folders) > 0 &&
			out.Folders[len(out.Folders)-1].Prefix == name {
			continue
		}
		if len(out.Contents)+len(out.Folders) == 1000 {
			out.IsTruncated, out.Next = true, b.keys[i]
			break
		}
		if within && q.Get("delimiter") == "/" {
			out.Folders = append(out.Folders, folder{name})
			continue
		}
		out.Contents = append(out.Contents, listed{b.keys[i], now.Format("2006-01-02T15:04:05.000Z"), `"x"`, 2})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

// TestTenThousandHostsTakeTenRequests checks that the view needs ten requests, and ten more for the keys in its first
// use, although each host has 30 reports.
func TestTenThousandHostsTakeTenRequests(t *testing.T) {
	artifacttest.Long(t)
	const hosts = 10_000
	key := hostKey(t)
	b := &bucket{}
	for i := range hosts {
		r := hostrecord.Record{
			Project: fmt.Sprintf("app%d", i%4), Host: fmt.Sprintf("app%d-production-%05d", i%4, i),
			Run: "20260501T115500.000000", Sequence: int64(i + 1), Outcome: "converged", Agent: "1.4.0", Form: 2,
			Service: &hostrecord.Place{Channel: "production", Version: "1.0", Digest: "0a000000"},
			Base:    &hostrecord.Place{Channel: "production", Version: "7", Digest: "0b000000"},
		}
		object, err := r.Key(key)
		if err != nil {
			t.Fatal(err)
		}
		b.keys = append(b.keys, object, hostkey.Place(r.Host, key.Public()))
		for day := range 30 {
			b.keys = append(b.keys, fmt.Sprintf("reports/%s/%s/202604%02dT115500.000000.json", r.Project, r.Host, day+1))
		}
	}
	slices.Sort(b.keys)
	fakes3.Login(t, "user", "secret")
	server := httptest.NewServer(b)
	defer server.Close()
	s, err := stores.Open("s3://bucket?endpoint="+server.URL, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	look := func(q fleet.Query) *fleet.View {
		t.Helper()
		b.requests.Store(0)
		q.Store, q.Now = s, now
		began := time.Now()
		v, err := fleet.Look(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d hosts in %d requests, %v", len(v.Hosts), b.requests.Load(), time.Since(began).Round(time.Millisecond))
		return v
	}
	first := look(fleet.Query{})
	if n := b.requests.Load(); len(first.Hosts) != hosts || n != 20 || !first.Hosts[0].Signed {
		t.Errorf("%d hosts in %d requests", len(first.Hosts), n)
	}
	if v := look(fleet.Query{Known: first.Known}); len(v.Hosts) != hosts || b.requests.Load() != 10 || !v.Hosts[0].Signed {
		t.Errorf("with their keys: %d hosts in %d requests", len(v.Hosts), b.requests.Load())
	}
	if v := look(fleet.Query{Known: first.Known, Project: "app2"}); len(v.Hosts) != hosts/4 || b.requests.Load() != 3 {
		t.Errorf("of one project: %d hosts in %d requests", len(v.Hosts), b.requests.Load())
	}
	// The start of a rollout reads the hosts of a channel: three listings of records, ten of keys, and three of the
	// prefixes of reports, independent of the number of reports.
	b.requests.Store(0)
	followers, err := fleet.Followers(t.Context(), s, hostkey.List, artifact.Ref{Project: "app2", Channel: "production"},
		now.Add(-time.Hour))
	if err != nil || len(followers) != hosts/4 || b.requests.Load() != 16 {
		t.Errorf("%d hosts follow the channel, in %d requests, %v", len(followers), b.requests.Load(), err)
	} else if f := followers[0]; f.Key != key.Public() || f.Cluster != "app2-production" || f.Agent != "1.4.0" ||
		f.At.IsZero() {
		t.Errorf("a follower is %+v", f)
	}
	b.requests.Store(0)
	base, err := fleet.Followers(t.Context(), s, hostkey.List, artifact.Ref{Project: "base", Channel: "production"},
		now.Add(-time.Hour))
	if err != nil || len(base) != hosts || b.requests.Load() != 33 {
		t.Errorf("%d hosts follow base, in %d requests, %v", len(base), b.requests.Load(), err)
	}
	b.requests.Store(0)
	agents, err := fleet.Agents(t.Context(), s, now.Add(-time.Hour))
	if err != nil || len(agents) != hosts || b.requests.Load() != 33 {
		t.Errorf("%d hosts have agents, in %d requests, %v", len(agents), b.requests.Load(), err)
	}
}

// member is a host of a small fleet.
type member struct {
	record hostrecord.Record
	key    hostkey.Key
	none   bool // without a registered key
}

func place(version string, n byte) *hostrecord.Place {
	return &hostrecord.Place{Channel: "production", Version: version, Digest: digest(n).Short()}
}

// TestAFleetIsCountedByVersion checks the numbers of hosts by version, and the list of what needs attention.
func TestAFleetIsCountedByVersion(t *testing.T) {
	s := mem.New()
	converged := func(name string, service *hostrecord.Place) member {
		return member{record: hostrecord.Record{Project: "myapp", Host: name, Run: "20260501T110000.000000", Sequence: 1,
			Outcome: "converged", Service: service, Base: place("7", 100)}, key: hostKey(t)}
	}
	good, drifted, held := converged("a", place("2", 2)), converged("b", place("2", 2)), converged("c", place("1", 1))
	drifted.record.Drifted, held.record.Held = true, true
	back, quarantine := converged("d", place("1", 1)), converged("e", place("1", 1))
	back.record.Outcome, back.record.Exit, back.record.Wanted = "rolled-back", 7, place("2", 2)
	quarantine.record.Quarantined, quarantine.record.Wanted = true, place("2", 2)
	failed, unregistered := converged("f", nil), converged("g", place("0", 9))
	failed.record.Outcome, failed.record.Wanted = "failed", place("2", 2)
	failed.record.Service = &hostrecord.Place{Channel: "production"}
	unregistered.none = true
	stranger := converged("a", place("1", 1))
	stranger.record.Host = "h"
	for _, m := range []member{good, drifted, held, back, quarantine, failed, unregistered, stranger} {
		w := hostrecord.Writer{Store: s, Key: m.key, File: filepath.Join(t.TempDir(), "record.json")}
		if err := w.Write(t.Context(), m.record, hostrecord.Detail{Error: m.record.Host + " says why"}); err != nil {
			t.Fatal(err)
		}
		if m.none {
			continue
		}
		if m.record.Host == "h" {
			m.key = hostKey(t)
		}
		if err := m.key.Register(t.Context(), s, hostkey.Registration{Host: m.record.Host}); err != nil {
			t.Fatal(err)
		}
	}
	listings := []trust.Listing{
		{Project: "myapp", Channels: map[string]trust.Pointer{"production": {Version: "2", Digest: digest(2)}},
			Yanked: map[string]trust.Yank{"0": {Digest: digest(9), Reason: "leaks"}}},
		{Project: "base", Channels: map[string]trust.Pointer{"production": {Version: "7", Digest: digest(100)}}},
	}
	q := fleet.Query{Store: s, Listings: listings, Now: time.Now(), SilentAfter: time.Hour}
	v, err := fleet.Look(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	app := artifact.Ref{Project: "myapp", Channel: "production"}
	want := []fleet.Row{
		{Ref: artifact.Ref{Project: "base", Channel: "production"}, Version: "7", Digest: digest(100).Short(), Named: true,
			Hosts: 7, Healthy: 6, Held: 1, Drifted: 1},
		{Ref: app, Version: "2", Digest: digest(2).Short(), Named: true, Hosts: 2, Healthy: 2, Failed: 1, RolledBack: 1,
			Quarantined: 1, Drifted: 1},
		{Ref: app, Version: "1", Digest: digest(1).Short(), Hosts: 3, Healthy: 3, Held: 1, Behind: 3},
		{Ref: app, Version: "0", Digest: digest(9).Short(), Hosts: 1, Healthy: 1, Behind: 1},
		{Ref: app, Hosts: 1, Behind: 1},
	}
	if !slices.Equal(v.Rows, want) {
		t.Errorf("the rows are\n%+v\nwant\n%+v", v.Rows, want)
	}
	var says []string
	for _, a := range v.Attention {
		says = append(says, fmt.Sprint(a.What, " ", a.Version, " ", strings.Join(a.Hosts, ","), " ", a.Why))
	}
	wantSays := []string{"failed 2 f f says why", "rolled back 2 d d says why", "quarantined 2 e e says why",
		"wrong key  h ", "withdrawn 0 g ", "unregistered  g ", "held 1 c "}
	if !slices.Equal(says, wantSays) {
		t.Errorf("what needs attention is\n%q\nwant\n%q", says, wantSays)
	}
	for name, c := range map[string]struct {
		change func(*fleet.Query)
		hosts  string
	}{
		"behind":          {func(q *fleet.Query) { q.BehindOnly = true }, "cdefg"},
		"silent":          {func(q *fleet.Query) { q.Silent = true }, ""},
		"silent, later":   {func(q *fleet.Query) { q.Silent, q.Now = true, q.Now.Add(2*time.Hour) }, "abcdefg"},
		"another project": {func(q *fleet.Query) { q.Project = "other" }, ""},
		"another channel": {func(q *fleet.Query) { q.Channel = "testing" }, ""},
		"one host":        {func(q *fleet.Query) { q.Host = "b" }, "b"},
	} {
		changed := q
		c.change(&changed)
		v, err := fleet.Look(t.Context(), changed)
		hosts := ""
		for _, h := range v.Hosts {
			hosts += h.Host
		}
		if err != nil || hosts != c.hosts {
			t.Errorf("%s: %q, %v, want %q", name, hosts, err, c.hosts)
		}
	}
}

// TestKeysOfAnEarlierLookAreReadAgain checks that keys are read again if none of them signed a record: the host was
// replaced since, and its first key was removed.
func TestKeysOfAnEarlierLookAreReadAgain(t *testing.T) {
	s := mem.New()
	first, second := hostKey(t), hostKey(t)
	r := hostrecord.Record{Project: "myapp", Host: "a", Run: "20260501T110000.000000", Sequence: 1, Outcome: "converged"}
	write := func(k hostkey.Key) {
		t.Helper()
		w := hostrecord.Writer{Store: s, Key: k, File: filepath.Join(t.TempDir(), "record.json")}
		if err := w.Write(context.Background(), r, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
		if err := k.Register(t.Context(), s, hostkey.Registration{Host: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	write(first)
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now()})
	if err != nil || len(v.Hosts) != 1 || !v.Fresh {
		t.Fatal(v, err)
	}
	for _, object := range []string{hostkey.Place("a", first.Public())} {
		if err := s.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	r.Sequence = 2
	write(second)
	again, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), Known: v.Known})
	if err != nil || len(again.Hosts) != 1 || !again.Hosts[0].Signed || again.Hosts[0].Sequence != 2 || !again.Fresh {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestVersionsWithTheSameBytes checks that they are one row, with the version of the channel.
func TestVersionsWithTheSameBytes(t *testing.T) {
	s := mem.New()
	digest := artifact.Digest("sha256:" + strings.Repeat("ab", 32))
	place := &hostrecord.Place{Channel: "production", Version: "1.0", Digest: digest.Short()}
	key := hostKey(t)
	r := hostrecord.Record{Project: "myapp", Host: "a", Run: "20260501T110000.000000", Sequence: 1, Outcome: "interrupted",
		Service: place}
	w := hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json")}
	if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	if err := key.Register(t.Context(), s, hostkey.Registration{Host: "a"}); err != nil {
		t.Fatal(err)
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), Listings: []trust.Listing{{Project: "myapp",
		Channels: map[string]trust.Pointer{"production": {Version: "1.0b", Digest: digest}}}}})
	want := []fleet.Row{{Ref: artifact.Ref{Project: "myapp", Channel: "production"}, Version: "1.0b",
		Digest: digest.Short(), Named: true, Also: "1.0", Hosts: 1, Healthy: 1}}
	if err != nil || !slices.Equal(v.Rows, want) {
		t.Errorf("%+v, %v, want %+v", v.Rows, err, want)
	}
	if len(v.Attention) != 0 {
		t.Errorf("an interrupted run needs attention: %+v", v.Attention)
	}
}

// TestOneKeyUnderTwoNames checks that two hosts with one key are reported if both run at the same time, and not if a
// host was renamed.
func TestOneKeyUnderTwoNames(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		first, second time.Time // when their runs started
		copied        bool
	}{
		"copies":  {now.Add(-time.Hour), now.Add(-50 * time.Minute), true},
		"renamed": {now.Add(-time.Hour), now, false},
	} {
		s, key := mem.New(), hostKey(t)
		for host, started := range map[string]time.Time{"a": c.first, "b": c.second} {
			r := hostrecord.Record{Project: "myapp", Host: host, Run: started.UTC().Format("20060102T150405.000000"),
				Sequence: 1, Outcome: "converged"}
			w := hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json")}
			if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
				t.Fatal(err)
			}
			if err := key.Register(t.Context(), s, hostkey.Registration{Host: host}); err != nil {
				t.Fatal(err)
			}
		}
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: now})
		if err != nil || len(v.Hosts) != 2 || v.Hosts[0].Copied != c.copied || (len(v.Attention) == 1) != c.copied {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestRunsOfAStoreThatCannotBeListed checks that a failed listing is an error, and not an empty list of runs.
func TestRunsOfAStoreThatCannotBeListed(t *testing.T) {
	s := storetest.NewFaulty(mem.New(), storetest.Fault{Op: store.OpList, Err: store.ErrUnreachable})
	host := hostrecord.Listed{Record: hostrecord.Record{Project: "myapp", Host: "web-1", Run: "20260105T080000.000000Z-a"}}
	if runs, err := fleet.Runs(t.Context(), s, nil, host); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("%v, %v; want %v", runs, err, store.ErrUnreachable)
	}
}

// TestHostWithoutRecordIsListed removes the record of a host with a registered key, and checks views with current and
// with earlier keys.
func TestHostWithoutRecordIsListed(t *testing.T) {
	s := mem.New()
	hosts := []string{"myapp-production-useast1-1", "myapp-production-useast1-2", "other-production-useast1-1.example.com"}
	for _, host := range hosts {
		k := hostKey(t)
		if err := k.Register(t.Context(), s, hostkey.Registration{Host: host}); err != nil {
			t.Fatal(err)
		}
		project, _, _ := strings.Cut(host, "-")
		w := hostrecord.Writer{Store: s, Key: k, File: filepath.Join(t.TempDir(), "record.json")}
		r := hostrecord.Record{Project: project, Host: host, Run: "20260501T110000.000000", Sequence: 1, Outcome: "converged"}
		if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
	}
	var known hostkey.Registry
	missing := func(q fleet.Query, want ...string) {
		t.Helper()
		q.Store, q.Now = s, time.Now()
		v, err := fleet.Look(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range v.Attention {
			if a.What == fleet.NoRecord {
				got = append(got, a.Hosts...)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: the hosts without a record are %q, want %q", q, got, want)
		}
		known = v.Known
	}
	missing(fleet.Query{})
	for _, of := range []string{"fleet/myapp/" + hosts[1], "fleet/other/" + hosts[2]} {
		for info, err := range s.List(t.Context(), of) {
			if err == nil {
				err = s.Delete(t.Context(), info.Key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	missing(fleet.Query{}, hosts[1], hosts[2])
	missing(fleet.Query{Known: known}, hosts[1], hosts[2])
	missing(fleet.Query{Project: "myapp"}, hosts[1])
	missing(fleet.Query{Project: "other"}, hosts[2])
	missing(fleet.Query{Channel: "production"})
	for _, k := range known[hosts[1]] {
		if err := s.Delete(t.Context(), hostkey.Place(hosts[1], k.Key)); err != nil {
			t.Fatal(err)
		}
	}
	missing(fleet.Query{Known: known}, hosts[2]) // the key was removed after the earlier view
}

// TestRecordFromTheFutureIsSilent checks that a host whose record has a future time does not count as alive.
func TestRecordFromTheFutureIsSilent(t *testing.T) {
	s, key := mem.New(), hostKey(t)
	w := hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json")}
	record := hostrecord.Record{Project: "myapp", Host: "a", Run: "20260501T110000.000000", Sequence: 1,
		Outcome: "converged", Service: place("1", 1)}
	if err := w.Write(t.Context(), record, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	for off, silent := range map[time.Duration]bool{-2 * time.Hour: true, -time.Minute: false, 2 * time.Hour: true} {
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now().Add(off), SilentAfter: time.Hour})
		if err != nil || len(v.Hosts) != 1 || v.Hosts[0].Silent != silent {
			t.Errorf("%v after its record: %+v, %v", off, v.Hosts, err)
		}
	}
}

// TestRowsOfWaitingReleasesEndWithThem checks that a release has no row if only the record of a waiting host has it: no
// host runs it, it failed nowhere, and no channel has it.
func TestRowsOfWaitingReleasesEndWithThem(t *testing.T) {
	s, key := mem.New(), hostKey(t)
	w := hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json")}
	record := hostrecord.Record{Project: "myapp", Host: "a", Run: "20260501T110000.000000", Sequence: 1,
		Outcome: "converged", Service: place("1", 1), Wanted: place("2", 2)}
	if err := w.Write(t.Context(), record, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	listings := []trust.Listing{{Project: "myapp", Channels: map[string]trust.Pointer{
		"production": {Version: "1", Digest: digest(1)}}}}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Listings: listings, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil || len(v.Rows) != 1 || v.Rows[0].Version != "1" {
		t.Errorf("rows %+v, %v", v.Rows, err)
	}
}

// TestHostsOfARemovedChannelAreListed checks that hosts whose channel was removed are listed with the ways to another
// one, and that the channels of a project that cannot be read are not taken for removed ones.
func TestHostsOfARemovedChannelAreListed(t *testing.T) {
	s, key := mem.New(), hostKey(t)
	r := hostrecord.Record{Project: "myapp", Host: "a", Run: "20260501T110000.000000", Sequence: 1, Outcome: "converged",
		Service: place("1", 1)}
	w := hostrecord.Writer{Store: s, Key: key, File: filepath.Join(t.TempDir(), "record.json")}
	if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	if err := key.Register(t.Context(), s, hostkey.Registration{Host: "a"}); err != nil {
		t.Fatal(err)
	}
	other := map[string]trust.Pointer{"testing": {Version: "1", Digest: digest(1)}}
	for name, c := range map[string]struct {
		listing trust.Listing
		listed  bool
	}{
		"removed":    {trust.Listing{Project: "myapp", Channels: other}, true},
		"unreadable": {trust.Listing{Project: "myapp", Err: errors.New("it is refused")}, false},
	} {
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Listings: []trust.Listing{c.listing}, Now: time.Now(),
			SilentAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if !c.listed {
			if len(v.Attention) != 0 {
				t.Errorf("%s: %+v", name, v.Attention)
			}
			continue
		}
		if len(v.Attention) != 1 || v.Attention[0].What != fleet.NoChannel || v.Attention[0].Channel != "production" ||
			!strings.Contains(v.Attention[0].Hint, "channels.service in its /etc/corpus/agent.yaml") {
			t.Errorf("%s: %+v, want the removed channel", name, v.Attention)
		}
	}
}
