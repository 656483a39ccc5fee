package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/delivery"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func TestRunIsSentToAWebhookAndMetrics(t *testing.T) {
	var events []notify.Event
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notify.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		events = append(events, n.Event)
	}))
	defer server.Close()
	l := newLab(t)
	l.Config.Notify.WebhookURL, l.Config.Notify.WebhookTimeout, l.Config.Notify.WebhookTries = server.URL, time.Minute, 1
	l.Config.Metrics = "/metrics/corpus.prom"
	if err := os.Mkdir(l.Layout.Path("/metrics"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.publish("1")
	l.expect(exit.OK)
	l.expect(exit.OK) // nothing new, so no notification
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	if len(events) != 2 || events[0] != notify.Success || events[1] != notify.Rollback {
		t.Errorf("the notified events are %v, want a success and a rollback", events)
	}
	data, err := os.ReadFile(l.Layout.Path("/metrics/corpus.prom"))
	if err != nil || !strings.Contains(string(data), `version="1"`) ||
		!strings.Contains(string(data), "corpus_agent_quarantined 1") {
		t.Errorf("metrics are\n%s%v", data, err)
	}
}

func TestUnreachableWebhookDoesNotFailTheRun(t *testing.T) {
	l := newLab(t)
	l.Config.Notify.WebhookURL, l.Config.Notify.WebhookTimeout, l.Config.Notify.WebhookTries = "http://127.0.0.1:1/",
		time.Second, 1
	l.publish("1")
	r := l.expect(exit.OK)
	noted(t, r, "notifying the webhook")
	kept, err := report.Archive{Dir: l.Layout.Reports()}.Load(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, kept, "notifying the webhook")
}

func TestReportIsPutIntoTheStore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UploadReports = true
	l.publish("1")
	r := l.expect(exit.OK)
	body, _, err := l.repo.Store.Get(context.Background(),
		delivery.ReportKey("myapp", "myapp-testing-useast1-1.example.com",
			r.ID), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var kept report.Report
	data, _ := io.ReadAll(body)
	if err := json.Unmarshal(data, &kept); err != nil || kept.ID != r.ID || kept.Outcome != report.Converged {
		t.Errorf("the report in the store is %s, %v", data, err)
	}
	agents, err := fleet.Agents(t.Context(), l.repo.Store, r.Started)
	if err != nil || len(agents) != 1 || agents[0].Host != "myapp-testing-useast1-1.example.com" ||
		agents[0].Form != trust.NewestForm {
		t.Errorf("the reports have the agents %+v, %v", agents, err)
	}
}

// TestContentOfPrivateFilesStaysOnTheHost checks that the uploaded report lacks the diff of a private file, and that
// the report on the host lacks what was in the file, which may be a secret of an earlier release. Both have the diff of
// a file that every user may read.
func TestContentOfPrivateFilesStaysOnTheHost(t *testing.T) {
	l := newNativeLab(t)
	l.Config.UploadReports = true
	states := func(version, text string) {
		l.states(version,
			"/etc/private:\n  file.managed:\n    - mode: '0600'\n    - contents: |\n        one\n        hunter2 "+text+"\n"+
				"/etc/public:\n  file.managed:\n    - contents: |\n        one\n        open "+text+"\n")
	}
	if err := os.MkdirAll(l.Layout.Path("/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	states("1", "1")
	l.expect(exit.OK)
	states("2", "2")
	r := l.expect(exit.OK)
	body, _, err := l.repo.Store.Get(context.Background(),
		delivery.ReportKey("myapp", "myapp-testing-useast1-1.example.com",
			r.ID), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	uploaded, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(uploaded); strings.Contains(text, "hunter2") || !strings.Contains(text, "open 2") ||
		!strings.Contains(text, "/etc/private") {
		t.Errorf("the store has %s", text)
	}
	kept, err := report.Archive{Dir: l.Layout.Reports()}.Load(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := json.Marshal(kept); err != nil || strings.Contains(string(data), "hunter2 1") ||
		!strings.Contains(string(data), "hunter2 2") || !strings.Contains(string(data), "open 1") {
		t.Errorf("the host has %s, %v", data, err)
	}
}
