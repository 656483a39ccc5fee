package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// A store was restored from an older copy, and a publisher without the newer state published version 1.1 again with
// other content. Hosts with the earlier 1.1 keep it, report it, and deploy the next version.
func TestVersionWithOtherBytesIsRefused(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for _, upgraded := range []string{"", "versions.json"} {
		t.Run("without "+upgraded, func(t *testing.T) {
			l := newLab(t)
			l.publishBase("1")
			l.publish("1.0")
			backup := l.repo.Snapshot()
			l.publish("1.1")
			l.expect(exit.OK)
			if upgraded != "" { // an earlier agent did not keep it
				if err := os.Remove(filepath.Join(l.Layout.Trust(), upgraded)); err != nil {
					t.Fatal(err)
				}
			}
			l.repo.Restore(backup)
			l.repo.Seen = filepath.Join(t.TempDir(), "seen") // a publisher without a saved state
			fresh := artifacttest.Of(t, l.repo.Publisher)
			if err := trust.Pin(l.repo.Seen, fresh.Root()); err != nil {
				t.Fatal(err)
			}
			l.repo = fresh
			// Enough changes to exceed the metadata versions that the host has read.
			for range 3 {
				l.publishBase("1")
				if _, err := refresh.Roles(t.Context(), fresh.Publisher, 24_000*time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			l.repo.Release("myapp", "1.1", "testing",
				artifacttest.Files{"version": "1.1 again", "salt/config/states/top.sls": "base: {}"})
			l.publishBase("2")
			r := l.expect(exit.Refused)
			l.links("1.1", "1.1", "")
			if got := l.version("base/current"); got != "2" {
				t.Errorf("base is %q, want 2: the failure of one project does not affect the other", got)
			}
			noted(t, r, "this host knows version 1.1 with digest")
			r = l.expect(exit.Refused)
			if !strings.Contains(r.Error, "the store now signs") {
				t.Errorf("the report's error is %q", r.Error)
			}
			l.publish("1.2")
			l.expect(exit.OK)
			l.links("1.2", "1.2", "1.1")
		})
	}
}
