package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/delivery"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestPrivateContentIsNotUploaded has states whose reports have content that only root may read, and compares the
// upload and the notice with the report on the host.
func TestPrivateContentIsNotUploaded(t *testing.T) {
	l := newNativeLab(t)
	l.Config.UploadReports = true
	var posted []byte
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posted, _ = io.ReadAll(r.Body)
	}))
	defer hooks.Close()
	l.Config.Notify = config.Notify{On: []string{"failure"}, WebhookURL: hooks.URL, WebhookTimeout: time.Minute,
		WebhookTries: 1}
	for dir, mode := range map[string]os.FileMode{"/etc": 0o755, "/etc/closed": 0o700} {
		if err := os.MkdirAll(l.Layout.Path(dir), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(l.Layout.Path(dir), mode); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{"/etc/app.ini": 0o600, "/etc/closed/file": 0o644, "/etc/opened": 0o600,
		"/etc/closing": 0o644} {
		l.put(file, "[db]\npassword = swordfish-before\n", mode)
	}
	l.put("/etc/public", "open\n", 0o644)
	l.states("1", `
/etc/app.ini:
  ini.options_present:
    - sections: {db: {password: swordfish-ini}}
/etc/closed/file:
  file.managed:
    - contents: swordfish-closed
/etc/opened:
  file.managed:
    - contents: opened
    - mode: '0644'
/etc/closing:
  file.append:
    - text: [swordfish-closing]
/etc/public:
  file.append:
    - text: [everybody-knows]
closes it:
  file.managed:
    - name: /etc/closing
    - mode: '0600'
    - replace: False
PASSWORD_OF_APP:
  environ.setenv:
    - value: swordfish-environ
fails:
  test.fail_without_changes: []
`)
	r, err := l.deploy()
	if exit.Code(err) != exit.Failed {
		t.Fatalf("exit code %d: %v", exit.Code(err), err)
	}
	kept, readErr := os.ReadFile(filepath.Join(l.Layout.Reports(), r.ID+".json"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	body, _, getErr := l.repo.Store.Get(context.Background(), delivery.ReportKey("myapp", r.Host, r.ID), 0)
	if getErr != nil {
		t.Fatal(getErr)
	}
	defer body.Close()
	uploaded, _ := io.ReadAll(body)
	for what, text := range map[string]string{"the upload": string(uploaded), "the webhook": string(posted)} {
		if text == "" || strings.Contains(text, "swordfish") {
			t.Errorf("%s: %s", what, text)
		}
	}
	for _, here := range []string{"swordfish-ini", "swordfish-closed", "swordfish-before", "swordfish-closing",
		"swordfish-environ", "everybody-knows"} {
		if !strings.Contains(string(kept), here) {
			t.Errorf("the report on the host lacks %s", here)
		}
	}
	var sent report.Report
	if err := json.Unmarshal(uploaded, &sent); err != nil || len(sent.Steps) != len(r.Steps) ||
		sent.FirstFailure() == nil {
		t.Errorf("the upload has %d steps of %d, %v", len(sent.Steps), len(r.Steps), err)
	}
	if !strings.Contains(string(uploaded), "everybody-knows") || !strings.Contains(string(uploaded), "PASSWORD_OF_APP") {
		t.Errorf("the upload lacks public content: %s", uploaded)
	}
}

// put writes a file with a mode, independent of the umask.
func (l *lab) put(file, text string, mode os.FileMode) {
	full := l.Layout.Path(file)
	if err := os.WriteFile(full, []byte(text), mode); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Chmod(full, mode); err != nil {
		l.t.Fatal(err)
	}
}
