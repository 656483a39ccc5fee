package undo_test

import (
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// makeGuest makes a guest as guest.present does, and removes the archive that had its disk.
func (s *scene) makeGuest(disks string) func(h *host.Host) {
	return func(h *host.Host) {
		s.Helper()
		s.do(h.Files.Chmod(disks, 0o700))
		s.write("/var/lib/corpus-guests/web1.json", "creating")(h)
		s.write("/var/lib/corpus-guests/web1/being-made", "")(h)
		s.write("/var/lib/corpus-guests/web1/authorized_keys", "a key")(h)
		s.do(h.Files.Mkdir(disks+"/.new-1", 0o700))
		s.put(disks+"/.new-1/data", "orders") // tar wrote it
		s.write(disks+"/.new-1/hostname", "web1")(h)
		s.do(h.Files.Rename(disks+"/.new-1", disks+"/web1"))
		s.write("/var/lib/corpus-guests/web1.json", "ready")(h)
		s.do(h.Files.Remove(disks + "/web1-2.tar"))
		s.write("/etc/mine.conf", "new")(h)
	}
}

// TestGuestsOutliveRollbacks takes back a run that made a guest, where the directory of disks is a directory or a link,
// or where the journal has the changes in it, as those of older agents do.
func TestGuestsOutliveRollbacks(t *testing.T) {
	for _, kind := range []string{"directory", "link", "recorded"} {
		s, disks := newScene(t), "/srv/disks"
		if kind == "directory" {
			disks = "/var/lib/machines"
		}
		s.put(disks+"/web1-2.tar", "the archive of the disk")
		link := func() {
			s.do(os.MkdirAll(s.path("/var/lib"), 0o755))
			s.do(os.Symlink(disks, s.path("/var/lib/machines")))
		}
		if kind == "link" {
			link()
		}
		s.run("1", s.makeGuest(disks))
		if kind == "recorded" { // it was no directory of disks while the run recorded
			link()
		}
		did := s.restoreTwice()
		if len(did.Failed) > 0 || kind != "recorded" && len(did.Left) > 0 {
			t.Errorf("%s: left: %q, failed: %q", kind, did.Left, did.Failed)
		}
		for name, want := range map[string]string{disks + "/web1/data": "orders", disks + "/web1/hostname": "web1",
			disks + "/.new-1/hostname": "(none)", disks + "/web1-2.tar": "(none)",
			"/var/lib/corpus-guests/web1.json": "ready", "/var/lib/corpus-guests/web1/being-made": "",
			"/var/lib/corpus-guests/web1/authorized_keys": "(none)", "/etc/mine.conf": "(none)"} {
			if got := s.text(name); got != want {
				t.Errorf("%s: after the rollback %s is %q, want %q", kind, name, got, want)
			}
		}
		if info, err := os.Stat(s.path(disks)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the directory of disks is %v (%v), want mode 0700", kind, info, err)
		}
	}
}
