package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

// TestFleetReadsARolloutInTwoRequests counts the requests of corpus fleet for a channel with a rollout: one for its
// roster, and one listing while hosts are behind.
func TestFleetReadsARolloutInTwoRequests(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := fakes3.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("prefix"))
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	sh := newShell(t)
	url := "s3://" + fakes3.Bucket + "?endpoint=http://" + server.Host
	sh.env["CORPUS_STORE"], sh.env["XDG_CACHE_HOME"] = url, t.TempDir()
	sh.expect(0, "keys new", "made")
	sh.expect(0, "store init", "set up")
	sh.artifact("one", "1")
	sh.artifact("two", "2")
	sh.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
	s, err := stores.Open(url, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Register(t.Context(), s, hostkey.Registration{Host: "myapp-production-1"}); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "record.json")
	runs := func(version string, sequence int64) {
		t.Helper()
		var digest string
		for _, r := range sh.releases("myapp") {
			if r.Version == version {
				digest = r.Digest.Short()
			}
		}
		w := hostrecord.Writer{Store: s, URL: url, Key: key, File: record, Now: time.Now()}
		r := hostrecord.Record{Project: "myapp", Host: "myapp-production-1", Run: time.Now().UTC().Format(hostrecord.RunTime),
			Sequence: sequence, Outcome: "converged", Agent: "dev", Form: 9,
			Service: &hostrecord.Place{Channel: "production", Version: version, Digest: digest}}
		if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() (all, ofRollouts int) {
		t.Helper()
		mu.Lock()
		asked = nil
		mu.Unlock()
		sh.expect(0, "fleet --trust-root @keys/root.json", "myapp/production")
		for _, a := range asked {
			if strings.Contains(a, "rollouts/") {
				ofRollouts++
			}
		}
		return len(asked), ofRollouts
	}
	runs("1.0", 1)
	look()
	without, none := look()
	sh.expect(0, "project rollout myapp production --waves 100% --agent dev", "")
	sh.expect(0, "publish myapp 1.1 @two.tar.zst --channel production", "its rollout to 1 host")
	look()
	behind, two := look()
	t.Logf("%d requests without a rollout, %d with one and a host behind: %q", without, behind, asked)
	if none != 0 || two != 2 {
		t.Errorf("%d and %d requests for rollouts, want 0 and 2: %q", none, two, asked)
	}
	runs("1.1", 2)
	arrived, one := look()
	t.Logf("%d requests with every host on the release: %q", arrived, asked)
	if one != 1 {
		t.Errorf("%d requests for a rollout that has arrived, want 1: %q", one, asked)
	}
}

// releases returns the releases of a project.
func (s *shell) releases(project string) (all []artifact.Release) {
	s.t.Helper()
	var list []struct {
		Project  string             `json:"project"`
		Releases []artifact.Release `json:"releases"`
	}
	s.json("ls --trust-root @keys/root.json", &list)
	for _, l := range list {
		if l.Project == project {
			all = append(all, l.Releases...)
		}
	}
	return all
}
