package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

func pair(version string) *ledger.Pair {
	return &ledger.Pair{Service: artifact.Release{Project: "myapp", Version: version,
		Digest: artifact.NewDigest(sha256.Sum256([]byte(version)))}}
}

func failed() *report.Report {
	return &report.Report{
		ID: "20260101T000000.000000", Command: "deploy", Host: "myapp-testing-1", Outcome: report.RolledBack, Exit: 7,
		Started: time.Unix(1000, 0).UTC(), Ended: time.Unix(1010, 0).UTC(), From: pair("1"), To: pair("2"),
		States: report.Counts{Total: 3, Failed: 1}, Error: "it broke\nin two lines", Hint: "fix it",
		Steps: []report.Step{{ID: "Ensure x", Function: "file.managed", Name: "/x", SLS: "web", Result: report.StepFailed}},
	}
}

func TestEventsOfRuns(t *testing.T) {
	for name, c := range map[string]struct {
		r    report.Report
		want notify.Event
	}{
		"no change":         {report.Report{From: pair("1"), To: pair("1")}, notify.NoChange},
		"drift":             {report.Report{From: pair("1"), States: report.Counts{Changed: 1}}, notify.Success},
		"always":            {report.Report{From: pair("1"), States: report.Counts{Changed: 1, Always: 1}}, notify.NoChange},
		"new release":       {report.Report{From: pair("1"), To: pair("2")}, notify.Success},
		"first release":     {report.Report{To: pair("1")}, notify.Success},
		"rolled back":       {report.Report{Exit: 7}, notify.Rollback},
		"rollback failed":   {report.Report{Exit: 8}, notify.Failure},
		"store unreachable": {report.Report{Exit: 5}, notify.Failure},
		"signal":            {report.Report{Exit: 130}, ""},
	} {
		if got := notify.EventOf(&c.r); got != c.want {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
	on := config.Notify{On: []string{"failure"}}
	if notify.Wanted(on, "") || notify.Wanted(on, notify.NoChange) || !notify.Wanted(on, notify.Failure) {
		t.Error("Wanted returns something else than failures")
	}
}

// receiver is a webhook that records requests and answers them with statuses, the last of which it repeats.
type receiver struct {
	*httptest.Server
	statuses []int
	bodies   [][]byte
	headers  []http.Header
}

func receive(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.bodies, r.headers = append(r.bodies, body), append(r.headers, req.Header)
		w.WriteHeader(r.statuses[min(len(r.bodies), len(r.statuses))-1])
	}))
	t.Cleanup(r.Close)
	return r
}

func TestWebhookSignsAndRetries(t *testing.T) {
	server := receive(t, 503, 429, 204)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hook := notify.Webhook{URL: server.URL + "/T0KEN", SecretFile: secret, Timeout: time.Minute, Tries: 4,
		Pause: time.Millisecond}
	if err := hook.Send(context.Background(), notify.NoticeOf(failed())); err != nil {
		t.Fatal(err)
	}
	if len(server.bodies) != 3 {
		t.Fatalf("%d requests, want 3", len(server.bodies))
	}
	mac := hmac.New(sha256.New, []byte("s3cret"))
	mac.Write(server.bodies[2])
	h := server.headers[2]
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); h.Get(notify.SignatureHeader) != want {
		t.Errorf("signature is %q, want %q", h.Get(notify.SignatureHeader), want)
	}
	if h.Get(notify.DeliveryHeader) != server.headers[0].Get(notify.DeliveryHeader) ||
		h.Get(notify.EventHeader) != "rollback" {
		t.Errorf("headers are %v", h)
	}
	var n notify.Notice
	if err := json.Unmarshal(server.bodies[2], &n); err != nil || n.Event != notify.Rollback || n.Failed == nil ||
		n.Failed.ID != "Ensure x" || n.To.Service.Version != "2" {
		t.Errorf("the notice is %+v, %v", n, err)
	}
}

// TestWebhookFollowsNoRedirect checks that the signed body goes to the configured URL alone.
func TestWebhookFollowsNoRedirect(t *testing.T) {
	other := receive(t, 204)
	for _, status := range []int{301, 302, 303, 307, 308} {
		redirecting := httptest.NewServer(http.RedirectHandler(other.URL, status))
		err := notify.Webhook{URL: redirecting.URL, Timeout: time.Minute, Tries: 1}.Send(t.Context(),
			notify.NoticeOf(failed()))
		redirecting.Close()
		if err == nil || len(other.bodies) > 0 {
			t.Errorf("%d: the other server received %d requests, and the error is %v", status, len(other.bodies), err)
		}
	}
}

func TestWebhookErrorsOmitTheURL(t *testing.T) {
	busy := receive(t, 500)
	refusing := receive(t, 403)
	redirecting := receive(t, 302)
	for _, c := range []struct{ url, want string }{
		{busy.URL + "/T0KEN", "status 500 (tries: 3)"}, {refusing.URL + "/T0KEN", "status 403 (tries: 1)"},
		{redirecting.URL + "/T0KEN", "status 302 (tries: 1)"},
		{"http://127.0.0.1:1/T0KEN", "connection refused"}, {"http://%zz/T0KEN", "not a URL"},
	} {
		err := notify.Webhook{URL: c.url, Timeout: time.Minute, Tries: 3, Pause: time.Millisecond}.Send(context.Background(),
			notify.NoticeOf(failed()))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "T0KEN") {
			t.Errorf("error is %v, want %q without the URL", err, c.want)
		}
	}
	if err := (notify.Webhook{URL: busy.URL, SecretFile: "/nonexistent", Tries: 1,
		Timeout: time.Second}).Send(context.Background(), notify.NoticeOf(failed())); err == nil {
		t.Error("a notice was sent unsigned although the secret cannot be read")
	}
}

// script writes a program that saves its arguments, event and standard input to the file kept, and then runs end.
func script(t *testing.T, end string) (program, kept string) {
	t.Helper()
	dir := t.TempDir()
	program, kept = filepath.Join(dir, "program"), filepath.Join(dir, "kept")
	text := "#!/bin/sh\n{ echo \"$@\"; echo \"$CORPUS_EVENT\"; cat; } > " + kept + "\n" + end + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, kept
}

func TestMailRunsSendmail(t *testing.T) {
	program, kept := script(t, "")
	r := failed()
	r.Host = "host\nBcc: eve@example.com"
	r.Notes = []string{"a file\nhint: forged", "a module\rnote: forged"}
	r.Error = "no\nnote: forged"
	if err := (notify.Mail{To: []string{"ops@example.com", "-x@example.com"}, From: "agent@example.com",
		Sendmail: program}).Send(context.Background(), notify.NoticeOf(r)); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(kept)
	text := string(data)
	for _, want := range []string{"-i -f agent@example.com -- ops@example.com -x@example.com\n", "\nTo: ops@example.com",
		"\nAuto-Submitted: auto-generated\n",
		"\nSubject: host Bcc: eve@example.com: deploy of myapp 2 rolled back\n",
		"first failure: file.managed /x (Ensure x in web)", "hint: fix it", "corpus-agent report 20260101T000000.000000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if headers, _, _ := strings.Cut(text, "\n\n"); strings.Contains(headers, "\nBcc:") {
		t.Errorf("a name became a header:\n%s", headers)
	}
	if strings.Contains(text, "\nhint: forged") || strings.Contains(text, "\nnote: forged") ||
		strings.Contains(text, "\r") {
		t.Errorf("a text became a line of the mail:\n%s", text)
	}
}

// TestNoticesOfGuests checks the mail and the journal entry about a guest that is ready.
func TestNoticesOfGuests(t *testing.T) {
	r := failed()
	n := notify.NoticeOfGuest(r, notify.Guest{Name: "web1", Host: "shop-prod-eu1-web1", Project: "shop", Env: "prod",
		Disk: "d1", Names: []string{"web1.example.com", "www.example.com"}, SSH: "ssh -p 40000 root@192.0.2.1"})
	const want = `myapp-testing-1: guest web1 is ready

hostname: shop-prod-eu1-web1
project: shop, prod
HTTP and HTTPS: web1.example.com, www.example.com
SSH: ssh -p 40000 root@192.0.2.1
`
	if got := n.Text(); got != want {
		t.Errorf("the mail is\n%s", got)
	}
	server := receive(t, 204)
	hook := notify.Webhook{URL: server.URL, Timeout: time.Minute, Tries: 1}
	if err := hook.Send(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	body := string(server.bodies[0])
	if server.headers[0].Get(notify.DeliveryHeader) != "d1" || server.headers[0].Get(notify.EventHeader) != "guest" ||
		strings.Contains(body, "it broke") || !strings.Contains(body, `"names":["web1.example.com","www.example.com"]`) {
		t.Errorf("the webhook got %v\n%s", server.headers[0], body)
	}
}

func TestProgramReceivesNoticeOnStdin(t *testing.T) {
	program, kept := script(t, "")
	if err := (notify.Command{Argv: []string{program, "--to", "chat"}}).Send(context.Background(),
		notify.NoticeOf(failed())); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(kept)
	if !strings.HasPrefix(string(data), "--to chat\nrollback\n{\"event\":\"rollback\"") {
		t.Errorf("the program got\n%s", data)
	}
	broken, _ := script(t, "echo no route >&2; exit 3")
	if err := (notify.Command{Argv: []string{broken}}).Send(context.Background(), notify.NoticeOf(failed())); err == nil ||
		!strings.Contains(err.Error(), "exit status 3: no route") {
		t.Errorf("for a program that fails the error is %v", err)
	}
}

func TestJournalEntryHasFields(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := (notify.Journal{Socket: socket}).Send(context.Background(), notify.NoticeOf(failed())); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64<<10)
	n, _, err := l.ReadFrom(buffer)
	if err != nil {
		t.Fatal(err)
	}
	entry := string(buffer[:n])
	for _, want := range []string{"PRIORITY=3\n", "CORPUS_RUN=20260101T000000.000000\n", "CORPUS_TO=myapp 2\n",
		"CORPUS_DURATION_SECONDS=10.000\n",
		// The length precedes a value of several lines.
		"MESSAGE\n" + string([]byte{69, 0, 0, 0, 0, 0, 0, 0}) +
			"myapp-testing-1: deploy of myapp 2 rolled back: it broke\nin two lines\n"} {
		if !strings.Contains(entry, want) {
			t.Errorf("%q is not in %q", want, entry)
		}
	}
	if err := (notify.Journal{Socket: filepath.Join(t.TempDir(), "none")}).Send(context.Background(),
		notify.NoticeOf(failed())); err != nil {
		t.Errorf("without a journal: %v", err)
	}
}

func TestSendersForAnotherRoot(t *testing.T) {
	c := config.Notify{Journal: true, WebhookURL: "http://h/", MailTo: []string{"a"}, Command: []string{"x"}}
	senders, skipped := notify.Senders(c, true)
	if len(senders) != 1 || strings.Join(skipped, ",") != "mail,notify.command" {
		t.Errorf("for another root senders are %v, skipped are %v", senders, skipped)
	}
	if senders, skipped = notify.Senders(c, false); len(senders) != 4 || skipped != nil {
		t.Errorf("for the host senders are %v, skipped are %v", senders, skipped)
	}
}
