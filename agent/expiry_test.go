package agent_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
)

// In the last third of a signature's lifetime, status, metrics and one notification report its expiry.
func TestSignaturesThatExpireSoon(t *testing.T) {
	var notices []notify.Notice
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notify.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		notices = append(notices, n)
	}))
	defer server.Close()
	l := newLab(t)
	l.Config.Notify.WebhookURL, l.Config.Notify.WebhookTimeout, l.Config.Notify.WebhookTries = server.URL, time.Minute, 1
	l.Config.Metrics = "/metrics/corpus.prom"
	if err := os.Mkdir(l.Layout.Path("/metrics"), 0o755); err != nil {
		t.Fatal(err)
	}
	metrics := func(want string) {
		t.Helper()
		if data, err := os.ReadFile(l.Layout.Path("/metrics/corpus.prom")); err != nil ||
			!strings.Contains(string(data), want) {
			t.Errorf("metrics are\n%s%v, want %s", data, err, want)
		}
	}
	l.publish("1")
	l.Now = artifacttest.Later(8) // of the 14 days of the timestamp
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || len(s.Expiring) != 0 || len(s.Expires) == 0 ||
		s.Expires[0].Role != "timestamp" {
		t.Errorf("status: %+v %+v, %v", s.Expires, s.Expiring, err)
	}
	metrics("corpus_agent_signatures_expiring 0\n")

	notices = nil
	l.Now = artifacttest.Later(10)
	for range 3 {
		l.expect(exit.OK)
	}
	if len(notices) != 1 || notices[0].Event != notify.Expiry || len(notices[0].Expiring) != 1 ||
		notices[0].Expiring[0].Role != "timestamp" {
		t.Errorf("three runs sent the notices %+v, want one about the timestamp", notices)
	}
	if s, err := l.Status(); err != nil || len(s.Expiring) != 1 ||
		!strings.Contains(s.Expiring[0].String(), "corpus refresh") {
		t.Errorf("status: %+v, %v", s.Expiring, err)
	}
	metrics("corpus_agent_signatures_expiring 1\n")
	metrics(`corpus_agent_signature_expires_timestamp_seconds{role="timestamp"} `)

	if _, err := refresh.Roles(t.Context(), l.repo.Publisher, time.Hour); err != nil {
		t.Fatal(err)
	}
	notices = nil
	l.Now = nil
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || len(s.Expiring) != 0 || len(notices) != 0 {
		t.Errorf("after a refresh: %+v, %v; notices %+v", s.Expiring, err, notices)
	}
	metrics("corpus_agent_signatures_expiring 0\n")
}
