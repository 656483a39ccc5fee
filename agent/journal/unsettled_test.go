package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// boot sets the boot ID of the lab's host.
func (l *lab) boot(id string) {
	l.t.Helper()
	file := filepath.Join(l.root, "proc/sys/kernel/random/boot_id")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(id+"\n"), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// start begins a run. The caller need not end it.
func (l *lab) start(id string) (*host.Host, *journal.Recorder) {
	l.t.Helper()
	r := l.journal.Record(journal.Run{ID: id, Pair: ledger.Key{Bytes: "a"}, Now: time.Now, Note: l.t.Logf})
	h, err := machine.New(host.Options{Root: l.root, Recorder: r})
	if err != nil {
		l.t.Fatal(err)
	}
	r.Bind(h)
	return h, r
}

// TestSettleAfterAPowerCut checks that Settle takes an after-image again if a power failure may have lost the change,
// even though the earlier after-image was written.
func TestSettleAfterAPowerCut(t *testing.T) {
	const whole, torn = 5, 0
	for name, c := range map[string]struct {
		reboot, synced bool
		want           int64
	}{
		"killed":                     {false, false, whole},
		"power failure":              {true, false, torn},
		"power failure after a sync": {true, true, whole},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.boot("one")
			h, r := l.start("1")
			l.write(h, "/etc/f", "whole")
			end := r.Settle
			if c.synced {
				end = r.Sync
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			l.write(h, "/etc/g", "second") // the write waits for the after-image
			if err := os.WriteFile(filepath.Join(l.root, "etc/f"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if c.reboot {
				l.boot("two")
			}
			if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
				t.Fatal(err)
			}
			settled := l.chapters()[0]
			if got := settled.Records[0].After.Part("/etc/f").Size; got != c.want {
				t.Errorf("the after-image has %d bytes, want %d", got, c.want)
			}
			// The after-image must not have later changes by a user.
			if err := os.WriteFile(filepath.Join(l.root, "etc/f"), []byte("of a user"), 0o644); err != nil {
				t.Fatal(err)
			}
			if c.reboot {
				if err := journal.Settle(l.journal, settled, h); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.chapters()[0].Records[0].After.Part("/etc/f").Size; got != c.want {
				t.Errorf("later the after-image has %d bytes, want %d", got, c.want)
			}
		})
	}
}

// TestAnnouncedPathsAreRecorded checks that announced paths are recorded before the first change, and that directories
// come before the files in them, so that undo removes them last.
func TestAnnouncedPathsAreRecorded(t *testing.T) {
	l := newLab(t)
	if err := os.Symlink("etc", filepath.Join(l.root, "conf")); err != nil {
		t.Fatal(err)
	}
	h, r := l.start("1")
	if err := h.Announce("/conf/a/b/f", "/conf/a/g"); err != nil {
		t.Fatal(err)
	}
	if err := r.Kept(); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, record := range l.chapters()[0].Records {
		recorded = append(recorded, record.Subject.Name)
	}
	if got := strings.Join(recorded, " "); got != "/etc/a /etc/a/b /etc/a/b/f /etc/a/g" {
		t.Errorf("the records are %s", got)
	}
	l.write(h, "/conf/a/b/f", "x")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(l.chapters()[0].Records); got != 4 {
		t.Errorf("after the change the chapter has %d records, want only the announced ones", got)
	}
}
