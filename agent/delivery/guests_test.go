package delivery

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/grains"
)

const (
	disk1 = "0123456789abcdef0123456789abcdef"
	disk2 = "fedcba9876543210fedcba9876543210"
)

// nodeWith returns a run of the node n1 in a directory, which sends to a webhook, and what the webhook got. The status
// is that of the webhook's answers. SSH answers on all addresses but those in down.
func nodeWith(t *testing.T, status *int, down map[string]bool) (*Run, *[]notify.Notice) {
	t.Helper()
	var got []notify.Notice
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notify.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil || r.Header.Get(notify.DeliveryHeader) != n.Guest.Disk {
			t.Errorf("the webhook got %v, %v", r.Header, err)
		}
		got = append(got, n)
		w.WriteHeader(*status)
	}))
	t.Cleanup(server.Close)
	s := &site.Site{Layout: layout.At(t.TempDir())}
	s.Config.Notify.On, s.Config.Notify.WebhookURL = []string{"guest"}, server.URL
	s.Config.Notify.WebhookTimeout, s.Config.Notify.WebhookTries = time.Minute, 1
	rep := &report.Report{ID: "run", Host: "cloud-prod-eu1-n1"}
	return &Run{Site: s, Ledger: &ledger.Ledger{}, Report: rep, Record: report.Record(rep, nil),
		Identity: &grains.Identity{Service: cloud.Project, Node: "n1"}, Save: func() error { return nil },
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if down[address] {
				return nil, os.ErrDeadlineExceeded
			}
			here, there := net.Pipe()
			go func() {
				_, _ = there.Write([]byte("SSH-2.0-x\r\n"))
				_ = there.Close()
			}()
			return here, nil
		}}, &got
}

// put writes a file of the node.
func put(t *testing.T, l layout.Layout, name, text string) {
	t.Helper()
	file := l.Path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// guestsOn gives the node a cloud with guests of which one has just been made.
func guestsOn(t *testing.T, l layout.Layout) {
	t.Helper()
	c := cloud.New()
	c.Domain = "cloud.example.com"
	c.Images["tiny"] = cloud.Image{Project: "tiny", Version: "1", Digest: "sha256:" + strings.Repeat("0", 64)}
	c.Nodes["n1"] = cloud.Node{Mode: "prod", Region: "eu1", Driver: cloud.DefaultDriver, Slots: 9, Address: "192.0.2.1"}
	for name, id := range map[string]string{"web1": disk1, "old1": disk2} {
		c.Guests[name] = cloud.Guest{ID: id, Node: "n1", Project: "shop", Env: "prod", Image: "tiny", Size: "5GiB"}
	}
	if err := c.Allocate(strings.NewReader(strings.Repeat("x", 99))); err != nil {
		t.Fatal(err)
	}
	data, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	put(t, l, "srv/projects/cloud/releases/1/"+cloud.Name, string(data))
	if err := os.Symlink("releases/1", l.Path("srv/projects/cloud/current")); err != nil {
		t.Fatal(err)
	}
	put(t, l, "var/lib/corpus-guests/old1.json", `{"id": "`+disk2+`", "driver": "nspawn", "step": "ready"}`)
	made(t, l, "ready", time.Now().Add(-time.Minute))
}

func made(t *testing.T, l layout.Layout, step string, at time.Time) {
	t.Helper()
	put(t, l, "var/lib/corpus-guests/web1.json", `{"id": "`+disk1+`", "driver": "nspawn", "step": "`+step+`", "made": "`+
		at.UTC().Format(time.RFC3339)+`"}`)
}

// TestReadyGuestsAreAnnouncedOnce checks that a notification names a guest when its SSH answers, once for its disk, and
// that one which no receiver took, or which a killed run did not record, is sent again.
func TestReadyGuestsAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	status, down := 503, map[string]bool{"10.80.0.3:22": true}
	r, got := nodeWith(t, &status, down)
	guestsOn(t, r.Site.Layout)
	sends := func(what string, want int) {
		t.Helper()
		*got = nil
		if r.announceGuests(context.Background()); len(*got) != want {
			t.Errorf("%s: %d notifications were sent, want %d; notes: %v", what, len(*got), want, r.Report.Notes)
		}
	}
	sends("SSH does not answer", 0)
	delete(down, "10.80.0.3:22")
	made(t, r.Site.Layout, "creating", time.Now().Add(-time.Minute))
	sends("an incomplete disk", 0)
	made(t, r.Site.Layout, "ready", time.Now().Add(-48*time.Hour))
	sends("a guest of two days ago", 0)
	made(t, r.Site.Layout, "ready", time.Now().Add(-time.Minute))
	sends("a webhook that is down", 1)
	sends("a webhook that is still down", 1)
	status = 200
	sends("the webhook works", 1)
	g := (*got)[0].Guest
	if g.Name != "web1" || g.Host != "shop-prod-eu1-web1" || g.SSH != "ssh -p 40001 root@192.0.2.1" ||
		strings.Join(g.Names, " ") != "web1.cloud.example.com" || (*got)[0].Event != notify.GuestReady {
		t.Errorf("the notification is of %+v", g)
	}
	sends("a second run", 0)
	r.Ledger.ReadyGuests = nil // as if the run had been killed
	sends("a run after a killed one", 1)
	if err := os.Remove(r.Site.Layout.Path("var/lib/corpus-guests/web1.json")); err != nil {
		t.Fatal(err)
	}
	if sends("the guest is gone", 0); len(r.Ledger.ReadyGuests) != 0 {
		t.Errorf("the ledger keeps disks that are gone: %v", r.Ledger.ReadyGuests)
	}
}

// TestNewGuestsAreAwaited checks that a run waits for a guest that it made just now, and mails the guest's contact.
func TestNewGuestsAreAwaited(t *testing.T) {
	t.Parallel()
	status, asked := 200, 0
	r, got := nodeWith(t, &status, nil)
	guestsOn(t, r.Site.Layout)
	made(t, r.Site.Layout, "ready", time.Now().Add(-25*time.Second))
	answer := r.Dial
	r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if asked++; asked == 1 {
			return nil, os.ErrDeadlineExceeded
		}
		return answer(ctx, network, address)
	}
	if r.announceGuests(context.Background()); len(*got) != 1 || asked != 2 {
		t.Errorf("%d notifications were sent after %d probes", len(*got), asked)
	}
}
