package trust_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// seen returns a host that has read the store, and forgers of the online roles write after that.
func seen(t *testing.T) (*artifacttest.Repo, *artifacttest.Host, *artifacttest.Forger) {
	t.Helper()
	repo := artifacttest.New(t)
	host := repo.Host()
	repo.Release("myapp", "1", "testing", app("1"))
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	return repo, host, repo.Forger(tuf.RoleTimestamp, tuf.RoleSnapshot)
}

// The snapshot is that which the host has seen, so that only the version of the timestamp is older.
func TestOlderTimestampOfTheSameSnapshotIsRefused(t *testing.T) {
	repo, host, forger := seen(t)
	older := repo.Object(trust.TimestampKey)
	forger.Forge(func(f *artifacttest.Forged) { f.Held = true; f.Timestamp.Signed.Version++ })
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	repo.Replace(trust.TimestampKey, older)
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckVersion)
}

// A store that was restored from a copy and then published to has two timestamps of one version.
func TestTimestampOfAVersionWithOtherContentIsRefused(t *testing.T) {
	repo, host, forger := seen(t)
	old := repo.Snapshot()
	forger.Forge(func(f *artifacttest.Forged) {})
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	repo.Restore(old)
	forger.Forge(func(f *artifacttest.Forged) { f.Snapshot.Signed.Expires = f.Snapshot.Signed.Expires.Add(-1e9) })
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckVersion)
	if err == nil || !strings.Contains(err.Error(), "says something else than the version") {
		t.Errorf("the error is %v", err)
	}
}

// The snapshot is newer than the host has seen, and names an older version of a role.
func TestNewerSnapshotWithAnOlderRoleIsRefused(t *testing.T) {
	repo, host, forger := seen(t)
	file := trust.MetaName(trust.HeadRole("myapp"))
	var older *tuf.MetaFiles
	forger.Forge(func(f *artifacttest.Forged) { older = f.Snapshot.Signed.Meta[file] })
	repo.Release("myapp", "2", "testing", app("2"))
	if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "2" {
		t.Fatal(r, err)
	}
	forger.Forge(func(f *artifacttest.Forged) { f.Before = func() { f.Snapshot.Signed.Meta[file] = older } })
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckVersion)
}
