// Package attack_test simulates attackers between a publisher and a host: the network, the store's owner, attackers
// with keys, and authors of archives. Each test is an attack of docs/trust.md with the capability that it needs. The
// host has to refuse the attack with an error that contains the failed check, the file and its signers, and must not
// write outside of the allowed places.
package attack_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func app(content string) artifacttest.Files { return artifacttest.Files{"app": content} }

// published returns a store with two versions of myapp and one of base, and a host that has read them.
func published(t *testing.T) (*artifacttest.Repo, *artifacttest.Host) {
	t.Helper()
	repo := artifacttest.New(t)
	repo.Release("base", "1", "production", app("base"))
	repo.Release("myapp", "1", "testing", app("one"))
	repo.Release("myapp", "2", "testing", app("two"))
	host := repo.Host()
	sees(t, host, "2")
	return repo, host
}

// sees checks that the channel of a host names a version.
func sees(t *testing.T, host *artifacttest.Host, version string) {
	t.Helper()
	if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != version {
		t.Fatalf("testing is %v, %v; want %s", r, err, version)
	}
}

// forceRootCheck makes a host look for newer roots although the timestamp is unchanged, as with a store that reports no
// versions of its files.
func forceRootCheck(t *testing.T, host *artifacttest.Host) {
	t.Helper()
	if err := os.Remove(filepath.Join(host.Dir, "timestamp.version")); err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error is a refusal with the failed check, the file, a hint, and for signatures the signers.
// Scripts get exit code 4.
func refused(t *testing.T, err error, check trust.Check, of string) {
	t.Helper()
	var r *trust.Refused
	if !errors.As(err, &r) || r.Check != check || !strings.Contains(r.Of, of) {
		t.Fatalf("error is %v, want a refusal of %s by the %s check", err, of, check)
	}
	if exit.Code(err) != exit.Refused {
		t.Errorf("exit code %d, want %d", exit.Code(err), exit.Refused)
	}
	if diag.HintOf(err) == "" {
		t.Errorf("%v has no hint", err)
	}
	release := strings.HasPrefix(of, "myapp ")
	if release && !strings.Contains(err.Error(), "signed by key") {
		t.Errorf("%v does not name the signers of the expected file", err)
	}
	if check == trust.CheckSignature && (!strings.Contains(err.Error(), "signed by key") ||
		!strings.Contains(err.Error(), "requires ")) {
		t.Errorf("%v does not name the signers and the allowed keys", err)
	}
}

func TestArbitrarySoftware(t *testing.T) {
	evil := artifacttest.Archive(t, app("evil"))
	for _, c := range []struct {
		name   string
		stolen []string // keys of these roles
		of     string
	}{
		{"without any key", nil, "timestamp.json"},
		{"with the timestamp key", []string{"timestamp"}, "snapshot.json"},
		{"with the online keys", []string{"timestamp", "snapshot"}, "myapp~head.json"},
		{"with the keys of another project", []string{"timestamp", "snapshot", "base"}, "myapp~head.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo, host := published(t)
			forger := repo.Forger(c.stolen...)
			forger.Forge(func(f *artifacttest.Forged) { forger.Sneak(f.Roles["myapp"], "myapp", "3", "testing", evil) })
			_, err := host.Resolve("myapp/testing")
			refused(t, err, trust.CheckSignature, c.of)
		})
	}
	t.Run("in an artifact's place", func(t *testing.T) {
		repo, host := published(t)
		client, err := host.Client()
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"})
		if err != nil {
			t.Fatal(err)
		}
		repo.Replace(trust.ObjectKey(r), evil)
		refused(t, fetch(t, client, r), trust.CheckDigest, "myapp 2")
	})
}

// fetch fetches a release into a file.
func fetch(t *testing.T, client *trust.Client, r artifact.Release) error {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	v, err := client.Fetch(t.Context(), r, file, nil)
	if (v == nil) == (err == nil) {
		t.Errorf("fetching gives %v and %v", v, err)
	}
	return err
}

func TestRollback(t *testing.T) {
	t.Run("of the whole store", func(t *testing.T) {
		repo := artifacttest.New(t)
		repo.Release("myapp", "1", "testing", app("one"))
		old := repo.Snapshot()
		repo.Release("myapp", "2", "testing", app("two"))
		host := repo.Host()
		sees(t, host, "2")
		repo.Restore(old)
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckVersion, "timestamp.json")
	})
	t.Run("of the snapshot, with the timestamp key", func(t *testing.T) {
		repo, host := published(t)
		repo.Forger("timestamp").Forge(func(f *artifacttest.Forged) {
			f.Held = true
			f.Timestamp.Signed.Version++
			f.Snapshot.Signed.Version--
		})
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckVersion, "timestamp.json")
	})
	t.Run("of a project, with the online keys", func(t *testing.T) {
		repo, host := published(t)
		repo.Forger("timestamp", "snapshot").Forge(func(f *artifacttest.Forged) {
			meta := f.Snapshot.Signed.Meta["myapp.json"]
			meta.Version--
			meta.Length, meta.Hashes = 0, nil
		})
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckVersion, "snapshot.json")
	})
	t.Run("of a project left out, with the online keys", func(t *testing.T) {
		repo, host := published(t)
		repo.Forger("timestamp", "snapshot").Forge(func(f *artifacttest.Forged) {
			delete(f.Snapshot.Signed.Meta, "myapp.json")
		})
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckForm, "snapshot.json")
	})
	t.Run("of the root", func(t *testing.T) {
		repo, host := published(t)
		if _, err := roots.Apply(t.Context(), repo.Publisher, roots.Change{Renew: true}); err != nil {
			t.Fatal(err)
		}
		sees(t, host, "2")
		// The old root under the next name does not count as a newer root.
		repo.Replace(trust.RoleKey("root", 3), repo.Object(trust.RoleKey("root", 1)))
		forceRootCheck(t, host)
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckVersion, "root.json")
	})
}

func TestFreezeAttackIsRefused(t *testing.T) {
	for days, expired := range map[int]string{13: "", 15: "timestamp.json", 400: "root.json"} {
		_, host := published(t)
		host.Now = artifacttest.Later(days)
		_, err := host.Resolve("myapp/testing")
		if expired != "" {
			refused(t, err, trust.CheckExpiry, expired)
		} else if err != nil {
			t.Errorf("a store without an update for %d days: %v", days, err)
		}
	}
	t.Run("with the timestamp key", func(t *testing.T) {
		repo, host := published(t)
		repo.Forger("timestamp").Forge(func(f *artifacttest.Forged) {
			f.Held = true // the same snapshot, for ten years
			f.Timestamp.Signed.Version++
			f.Timestamp.Signed.Expires = time.Now().AddDate(10, 0, 0)
			f.Before = func() { f.Snapshot.Signatures = nil }
		})
		host.Now = artifacttest.Later(100)
		_, err := host.Resolve("myapp/testing")
		var r *trust.Refused
		if !errors.As(err, &r) || exit.Code(err) != exit.Refused {
			t.Errorf("a store frozen for 100 days with the timestamp key: %v, want it refused", err)
		}
	})
}

func TestMixAndMatch(t *testing.T) {
	repo, _ := published(t)
	before := repo.Snapshot()
	repo.Release("myapp", "3", "testing", app("three"))
	now := repo.Snapshot()
	// Each new name gets the content of an older name.
	for key := range now {
		if _, old := before[key]; old || !strings.HasPrefix(key, "metadata/") ||
			strings.HasPrefix(key, trust.PagePrefix("myapp")) {
			continue // another test attacks pages
		}
		if strings.HasSuffix(key, ".myapp.json") {
			continue // the list for older readers, which this client does not read
		}
		t.Run(key, func(t *testing.T) {
			defer repo.Restore(now)
			role := key[strings.Index(key, ".")+1:]
			repo.Replace(key, before[newest(before, role)])
			_, err := repo.Host().Resolve("myapp/testing")
			refused(t, err, trust.CheckDigest, role)
		})
	}
}

// newest returns the newest version of a role's file among objects.
func newest(objects map[string][]byte, file string) string {
	best := ""
	for key := range objects {
		if strings.HasSuffix(key, "."+file) && (len(key) > len(best) || len(key) == len(best) && key > best) {
			best = key
		}
	}
	return best
}

func TestFastForwardAndRecovery(t *testing.T) {
	for _, role := range []string{"timestamp", "snapshot"} {
		for _, to := range []int64{1_000_000, math.MaxInt64} {
			repo, host := published(t)
			repo.Forger("timestamp", "snapshot").Forge(func(f *artifacttest.Forged) {
				f.Held = true
				f.Timestamp.Signed.Version++
				f.Snapshot.Signed.Version++
				if role == "timestamp" {
					f.Timestamp.Signed.Version = to
				} else {
					f.Snapshot.Signed.Version = to
				}
			})
			sees(t, host, "2") // its signatures are valid
			// The owner of the root removes the stolen keys and rebuilds both roles.
			for _, stolen := range []string{"timestamp", "snapshot"} {
				replaceKey(t, repo, stolen)
			}
			if _, err := recovery.Rebuild(t.Context(), repo.Publisher); err != nil {
				t.Fatal(err)
			}
			sees(t, host, "2")
			repo.Release("myapp", "3", "testing", app("three"))
			sees(t, host, "3")
		}
	}
}

// replaceKey gives a role of the root a new key and removes the old one at once, as after a theft.
func replaceKey(t *testing.T, repo *artifacttest.Repo, role string) {
	t.Helper()
	next := repo.Aside()
	if _, err := next.New(role, 1); err != nil {
		t.Fatal(err)
	}
	fresh, err := next.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	old, err := repo.Keys.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	id, err := old[0].ID()
	if err != nil {
		t.Fatal(err)
	}
	repo.AtOnce = true
	defer func() { repo.AtOnce = false }()
	_, err = roots.Apply(t.Context(), repo.Publisher, roots.Change{
		Add: map[string][]*tuf.Key{role: fresh}, Remove: map[string][]string{role: {id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Keys.Retire(role, next); err != nil {
		t.Fatal(err)
	}
}

func TestKeyCompromiseUnderThresholds(t *testing.T) {
	t.Run("one of three root keys", func(t *testing.T) {
		repo, host := published(t)
		attacker := repo.Forger("timestamp", "snapshot", "targets")
		// The attacker's root names the attacker's keys and is signed only with them.
		attacker.Root(func(root *tuf.RootType) { _ = root.AddKey(attacker.Public("root"), "root") })
		sees(t, host, "2") // the timestamp is unchanged, so the host does not look for a root
		forceRootCheck(t, host)
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckSignature, "root.json")
	})
	t.Run("a root that lowers its own threshold", func(t *testing.T) {
		repo, host := published(t)
		grow(t, repo, "root", 3, 2)
		sees(t, host, "2")
		all, err := repo.Keys.Keys("root")
		if err != nil {
			t.Fatal(err)
		}
		repo.Forger().Root(func(root *tuf.RootType) { root.Roles["root"].Threshold = 1 }, all[0])
		forceRootCheck(t, host)
		_, err = host.Resolve("myapp/testing")
		refused(t, err, trust.CheckSignature, "root.json")
		// Two signatures with the same key count as one.
		repo.Forger().Root(func(root *tuf.RootType) { root.Version--; root.Roles["root"].Threshold = 1 }, all[0], all[0])
		if _, err = host.Resolve("myapp/testing"); exit.Code(err) != exit.Refused {
			t.Errorf("a root signed twice with one key: %v, want it refused", err)
		}
	})
	t.Run("one of two keys of targets", func(t *testing.T) {
		repo, host := published(t)
		grow(t, repo, "targets", 2, 2)
		sees(t, host, "2")
		stolen := one(t, repo, "targets")
		attacker := repo.Forger("timestamp", "snapshot")
		attacker.Forge(func(f *artifacttest.Forged) {
			f.Roles["targets"].Signed.Version++
			f.Before = func() { resign(t, repo, f, "targets", stolen) }
		})
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckSignature, "targets.json")
	})
	t.Run("one of two keys of a project", func(t *testing.T) {
		repo, host := published(t)
		if _, err := repo.Keys.New("myapp", 2); err != nil {
			t.Fatal(err)
		}
		keys, err := repo.Keys.Public("myapp")
		if err != nil {
			t.Fatal(err)
		}
		if err := projects.Add(t.Context(), repo.Publisher, "myapp", 2, keys...); err != nil {
			t.Fatal(err)
		}
		repo.Release("myapp", "3", "testing", app("three"))
		sees(t, host, "3")
		stolen := one(t, repo, "myapp")
		attacker := repo.Forger("timestamp", "snapshot")
		attacker.Forge(func(f *artifacttest.Forged) {
			attacker.Sneak(f.Roles["myapp"], "myapp", "4", "testing", artifacttest.Archive(t, app("evil")))
			f.Before = func() { resign(t, repo, f, "myapp", stolen) }
		})
		_, err = host.Resolve("myapp/testing")
		refused(t, err, trust.CheckSignature, "myapp~head.json")
	})
}

// grow gives a role of the root more keys, and the threshold.
func grow(t *testing.T, repo *artifacttest.Repo, role string, keys, threshold int) {
	t.Helper()
	if _, err := repo.Keys.New(role, keys); err != nil {
		t.Fatal(err)
	}
	all, err := repo.Keys.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	change := roots.Change{Add: map[string][]*tuf.Key{role: all}, Threshold: map[string]int{role: threshold}}
	if _, err := roots.Apply(t.Context(), repo.Publisher, change); err != nil {
		t.Fatal(err)
	}
}

// one returns the first key of a role, which is the stolen one.
func one(t *testing.T, repo *artifacttest.Repo, role string) keyring.Key {
	t.Helper()
	all, err := repo.Keys.Keys(role)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// resign signs a forged role with one key and writes it under its name.
func resign(t *testing.T, repo *artifacttest.Repo, f *artifacttest.Forged, name string, key keyring.Key) {
	t.Helper()
	role := f.Roles[name]
	role.Signatures = []tuf.Signature{}
	if _, err := artifacttest.Sign(role, key); err != nil {
		t.Fatal(err)
	}
	data, err := role.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	repo.Replace(trust.RoleKey(name, role.Signed.Version), data)
	f.Snapshot.Signed.Meta[name+".json"] = artifacttest.Described(role.Signed.Version, data)
}

func TestWrongClock(t *testing.T) {
	_, host := published(t)
	for _, behind := range []time.Duration{2 * time.Hour, 48 * time.Hour, 10 * 365 * 24 * time.Hour} {
		host.Now = func() time.Time { return time.Now().Add(-behind) }
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckClock, "timestamp.json")
	}
	host.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
	sees(t, host, "2")

	// Metadata that was read earlier remains valid, even if the store has no newer metadata.
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("one"))
	host = repo.Host()
	sees(t, host, "1")
	if err := repo.Store.Delete(t.Context(), trust.TimestampKey); err != nil {
		t.Fatal(err)
	}
	host.Now = func() time.Time { return time.Now().AddDate(0, -1, 0) }
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckClock, "timestamp.json")

	// A publisher with such a clock signs nothing.
	late := *artifacttest.New(t).Publisher
	late.Now = host.Now
	_, err = refresh.Roles(t.Context(), &late, 0)
	refused(t, err, trust.CheckClock, "timestamp.json")
}

func TestUnreachableIsNotRefused(t *testing.T) {
	repo, host := published(t)
	for _, key := range []string{trust.TimestampKey, newest(repo.Snapshot(), "snapshot.json"),
		newest(repo.Snapshot(), "myapp~head.json")} {
		fresh := repo.Host()
		data := repo.Object(key)
		if err := repo.Store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		_, err := fresh.Resolve("myapp/testing")
		if exit.Code(err) != exit.Unreachable || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("without %s: %v, exit code %d, want %d", key, err, exit.Code(err), exit.Unreachable)
		}
		repo.Replace(key, data)
	}
	sees(t, host, "2")
}
