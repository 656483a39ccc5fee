package doctor_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// find returns the finding of a check.
func find(t *testing.T, found *doctor.Findings, check string) doctor.Finding {
	t.Helper()
	i := slices.IndexFunc(found.List, func(f doctor.Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("the check %s has no finding in %v", check, found.List)
	}
	return found.List[i]
}

// want compares a finding. Each problem has a cure with a code.
func want(t *testing.T, f doctor.Finding, status doctor.Status, text string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Text, text) {
		t.Errorf("%s has the status %s (%s), want %s with %q", f.Check, f.Status, f.Text, status, text)
	}
	if wrong := f.Status == doctor.Warning || f.Status == doctor.Failed; wrong != (f.Cure != "" && f.Code != "") {
		t.Errorf("%s has the status %s and the cure %q", f.Check, f.Status, f.Cure)
	}
}

// TestClockIsComparedWithTheDateOfTheStore reads the Date header of a real HTTP server on machines with wrong clocks.
func TestClockIsComparedWithTheDateOfTheStore(t *testing.T) {
	server :=
		httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		off    time.Duration
		status doctor.Status
		text   string
	}{
		"right":         {0, doctor.OK, "less than a minute"},
		"a bit ahead":   {30 * time.Second, doctor.OK, "less than a minute"},
		"ahead":         {3 * time.Minute, doctor.Warning, "ahead of"},
		"behind":        {-3 * time.Minute, doctor.Warning, "behind"},
		"far ahead":     {time.Hour, doctor.Failed, "ahead of"},
		"far behind":    {-time.Hour, doctor.Failed, "behind"},
		"before a leap": {-40 * 365 * 24 * time.Hour, doctor.Failed, "behind"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stores.Open(server.URL, stores.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var found doctor.Findings
			if !found.AskStore(t.Context(), doctor.Store{Store: s, URL: server.URL,
				Now: func() time.Time { return time.Now().Add(c.off) }}) {
				t.Errorf("the store does not answer: %v", found.List)
			}
			want(t, find(t, &found, "clock"), c.status, c.text)
		})
	}
}

// TestClockIsReadOfARefusalToo has a server refuse the requests of a machine, as S3 does if the clock is wrong.
func TestClockIsReadOfARefusalToo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	s, err := stores.Open(server.URL, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found doctor.Findings
	if found.AskStore(t.Context(), doctor.Store{Store: s, URL: server.URL, Now: artifacttest.Later(1)}) {
		t.Error("a store that refuses to answer counts as readable")
	}
	want(t, find(t, &found, "clock"), doctor.Failed, "ahead of")
	want(t, find(t, &found, "read"), doctor.Failed, "access denied")
	if exit.Code(found.Err()) != exit.Failed {
		t.Errorf("the exit code is %d", exit.Code(found.Err()))
	}
}

// TestExpiryIsFoundBeforeAndAfter checks one store on several days.
func TestExpiryIsFoundBeforeAndAfter(t *testing.T) {
	r := artifacttest.New(t)
	for days, c := range map[int]struct {
		status doctor.Status
		text   string
	}{
		0:  {doctor.OK, "the first signature to expire is that of timestamp"},
		10: {doctor.Warning, "the signature of timestamp expires on"},
	} {
		var found doctor.Findings
		_, done := found.AskTrust(t.Context(), doctor.Store{Store: r.Store, Now: artifacttest.Later(days)}, r.Root(), "")
		done()
		want(t, find(t, &found, "expiry"), c.status, c.text)
		want(t, find(t, &found, "signatures"), doctor.OK, "root version 1")
	}
	var found doctor.Findings
	client, done := found.AskTrust(t.Context(), doctor.Store{Store: r.Store, Now: artifacttest.Later(20)}, r.Root(), "")
	done()
	if client != nil {
		t.Error("AskTrust returned a client for an expired store")
	}
	want(t, find(t, &found, "signatures"), doctor.Failed, "timestamp.json expired at")
	if cure := find(t, &found, "signatures").Cure; !strings.Contains(cure, "corpus refresh") {
		t.Errorf("the cure is %q", cure)
	}
}

// refusing is a store that counts writes, and refuses some as a server does that denies them.
type refusing struct {
	store.Store
	refused string
	writes  int
}

func (r *refusing) Put(ctx context.Context, key string, body io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if r.refused != "" && strings.HasPrefix(key, r.refused) {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrForbidden}
	}
	info, err := r.Store.Put(ctx, key, body, size, cond)
	if err == nil {
		r.writes++
	}
	return info, err
}

// TestRightsToWriteAreFoundWithoutWriting checks a store that permits writes below one prefix and not below another.
func TestRightsToWriteAreFoundWithoutWriting(t *testing.T) {
	s := &refusing{Store: mem.New(), refused: "hosts/"}
	of := doctor.Store{Store: s, URL: "mem", Now: time.Now}
	for proven, status := range map[bool]doctor.Status{false: doctor.Failed, true: doctor.Warning} {
		var found doctor.Findings
		found.AskWrite(t.Context(), of, "host-reports", proven, "reports/myapp/a/")
		want(t, find(t, &found, "write"), doctor.OK, "reports/myapp/a/ can be written")
		found = doctor.Findings{}
		found.AskWrite(t.Context(), of, "host-reports", proven, "hosts/a/")
		want(t, find(t, &found, "write"), status, "hosts/a/")
	}
	s.refused = "deploy/"
	var found doctor.Findings
	found.AskPublish(t.Context(), of)
	want(t, find(t, &found, "write"), doctor.OK, "deploy/ cannot be written, which only publishers need")
	if s.writes > 0 {
		t.Errorf("%d objects were written", s.writes)
	}
}
