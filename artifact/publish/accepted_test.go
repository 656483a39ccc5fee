package publish_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// changed lists the objects that differ between two states of a store.
func changed(before, after map[string][]byte) (keys []string) {
	for key, data := range after {
		if old, ok := before[key]; !ok || string(old) != string(data) {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// public is the public key of a role that a publisher has.
func public(t *testing.T, p *publish.Publisher, role string) (*tuf.Key, string) {
	t.Helper()
	keys, err := p.Keys.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys[0].ID()
	if err != nil {
		t.Fatal(err)
	}
	return keys[0], id
}

// Keys of one store write nothing into another, whichever command it is.
func TestKeysOfAnotherStoreWriteNothing(t *testing.T) {
	t.Parallel()
	theirs, ours := artifacttest.New(t), artifacttest.New(t)
	theirs.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	ours.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	host := theirs.Host()
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	_, id := public(t, ours.Publisher, "timestamp")
	draft, _, err := ours.Export(t.Context(), tuf.RoleRoot)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tar.zst")
	writeFile(t, file, artifacttest.Archive(t, artifacttest.Files{"app": "2"}))
	before := theirs.Snapshot()
	for name, try := range map[string]func(p *publish.Publisher) error{
		"root change": func(p *publish.Publisher) error {
			_, err := p.ChangeRoot(t.Context(), publish.RootChange{Renew: true})
			return err
		},
		"root change at once": func(p *publish.Publisher) error {
			p.AtOnce = true
			_, err := p.ChangeRoot(t.Context(), publish.RootChange{Remove: map[string][]string{"timestamp": {id}}, Threshold: map[string]int{"timestamp": 1}})
			return err
		},
		"rotate root": func(p *publish.Publisher) error { _, err := p.Rotate(t.Context(), "root", ours.Aside()); return err },
		"rotate timestamp": func(p *publish.Publisher) error {
			_, err := p.Rotate(t.Context(), "timestamp", ours.Aside())
			return err
		},
		"rotate myapp": func(p *publish.Publisher) error { _, err := p.Rotate(t.Context(), "myapp", ours.Aside()); return err },
		"refresh":      func(p *publish.Publisher) error { _, err := p.Refresh(t.Context(), 0); return err },
		"rebuild":      func(p *publish.Publisher) error { _, err := p.Rebuild(t.Context()); return err },
		"import":       func(p *publish.Publisher) error { _, err := p.Import(t.Context(), draft); return err },
		"init":         func(p *publish.Publisher) error { _, err := p.Init(t.Context(), 0); return err },
		"gc": func(p *publish.Publisher) error {
			_, err := collect.Garbage(t.Context(), p, collect.Grace{}, false)
			return err
		},
		"publish": func(p *publish.Publisher) error {
			_, err := p.Publish(t.Context(), publish.Request{Project: "myapp", Version: "2", File: file, Channel: "testing"})
			return err
		},
		"promote": func(p *publish.Publisher) error {
			_, err := p.Promote(t.Context(), "myapp", "testing", "production")
			return err
		},
	} {
		for _, their := range []string{"their first root", "their second root"} {
			lost := *ours.Publisher
			lost.Store = theirs.Store
			if err := try(&lost); err == nil {
				t.Errorf("%s over %s succeeds with another store's keys", name, their)
			}
			if keys := changed(before, theirs.Snapshot()); len(keys) > 0 {
				t.Fatalf("%s over %s with another store's keys wrote %v", name, their, keys)
			}
		}
	}
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Error(err)
	}
}

// The root's holder alone rotates what can be rotated so; for the rest nothing is written, and the steps
// that the error names lead there, with hosts that follow all the time.
func TestRotationByTheRootsHolderAlone(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"timestamp", "snapshot", "targets"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			repo := artifacttest.New(t)
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			old := repo.Host()
			follows := func(when string) {
				t.Helper()
				for name, host := range map[string]*artifacttest.Host{"one that knew the store": old, "a new one": repo.Host()} {
					if _, err := host.Resolve("myapp/testing"); err != nil {
						t.Fatalf("%s: %s sees %v", when, name, err)
					}
				}
			}
			follows("before")
			holder := repo.As("root", role)
			next := repo.Aside()
			before := repo.Snapshot()
			_, err := holder.Rotate(t.Context(), role, next)
			follows("after rotating " + role)
			if role == "timestamp" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var unaccepted *publish.Unaccepted
			if !errors.As(err, &unaccepted) || !strings.Contains(unaccepted.Hint(), "--add-key") {
				t.Fatalf("rotating %s with the root's key alone: %v, want steps", role, err)
			}
			if keys := changed(before, repo.Snapshot()); len(keys) > 0 {
				t.Fatalf("rotating %s was refused, and wrote %v", role, keys)
			}
			fresh, err := next.Public(role)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.ChangeRoot(t.Context(), publish.RootChange{Add: map[string][]*tuf.Key{role: fresh}}); err != nil {
				t.Fatal(err)
			}
			follows("with the new key let in")
			online := repo.As("snapshot", "timestamp")
			if role == "snapshot" {
				copyKey(t, next.Dir, "snapshot", online.Keys.Dir, "snapshot-2")
				_, err = online.Refresh(t.Context(), 0)
			} else {
				var draft *publish.Draft
				if draft, _, err = online.Export(t.Context(), role); err == nil {
					keys, _ := next.Keys(role)
					if err = draft.Sign(keys); err == nil {
						_, err = online.Import(t.Context(), draft)
					}
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			follows("with the new key's signature")
			if _, err := holder.Rotate(t.Context(), role, next); err != nil {
				t.Fatal(err)
			}
			follows("in the end")
		})
	}
}

// TestEveryChangeCutAtEveryWrite cuts each change of keys at each write: hosts follow at every moment, and
// the same command goes on.
func TestEveryChangeCutAtEveryWrite(t *testing.T) {
	t.Parallel()
	type change func(*artifacttest.Repo, publish.Keyring) error
	rotate := func(role string) change {
		return func(r *artifacttest.Repo, next publish.Keyring) error {
			_, err := r.Rotate(t.Context(), role, next)
			return err
		}
	}
	for name, run := range map[string]change{
		"rotate timestamp": rotate("timestamp"), "rotate snapshot": rotate("snapshot"), "rotate targets": rotate("targets"),
		"rotate root": rotate("root"), "rotate myapp": rotate("myapp"),
		"threshold": func(r *artifacttest.Repo, _ publish.Keyring) error {
			if _, err := r.Keys.New("targets", 2); err != nil {
				return err
			}
			keys, err := r.Keys.Public("targets")
			if err != nil {
				return err
			}
			_, err = r.ChangeRoot(t.Context(), publish.RootChange{Add: map[string][]*tuf.Key{"targets": keys}, Threshold: map[string]int{"targets": 2}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 0; cut < 20; cut++ {
				s := &failing{Store: mem.New(), left: 1 << 30}
				repo := artifacttest.On(t, s)
				repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
				old := repo.Host()
				sees := func(when string) {
					t.Helper()
					for kind, host := range map[string]*artifacttest.Host{"an old host": old, "a new host": repo.Host()} {
						if _, err := host.Resolve("myapp/testing"); err != nil {
							t.Fatalf("%s after %d writes, %s: %s sees %v", name, cut, when, kind, err)
						}
					}
				}
				sees("before")
				next := repo.Aside()
				s.left = cut
				first := run(repo, next)
				sees("cut")
				// Cut a second time, and then not any more.
				s.left = cut
				second := run(repo, next)
				sees("cut twice")
				s.left = 1 << 30
				if first != nil && second != nil {
					if err := run(repo, next); err != nil {
						t.Fatalf("again after %d writes, twice: %v", cut, err)
					}
				}
				sees("in the end")
				repo.Release("myapp", "2", "testing", artifacttest.Files{"app": "2"})
				sees("with another release")
				if first == nil {
					return
				}
			}
			t.Error("20 writes are not enough")
		})
	}
}

// What a killed publisher had not put into force is not put into force by a rebuild, and what is missing
// is named, not forgotten.
func TestRebuildTakesWhatSnapshotsName(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"", "timestamp", "snapshot", "both"} {
		t.Run("without "+lost, func(t *testing.T) {
			s := &failing{Store: mem.New(), left: 1 << 30}
			repo := artifacttest.On(t, s)
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			repo.Release("base", "1", "testing", artifacttest.Files{"app": "1"})
			host := repo.Host()
			if _, err := host.Resolve("myapp/testing"); err != nil {
				t.Fatal(err)
			}
			before := repo.Snapshot()
			for left := 0; ; left++ { // killed after it has written the project, and before the snapshot
				s.left = left
				file := filepath.Join(t.TempDir(), "x.tar.zst")
				writeFile(t, file, artifacttest.Archive(t, artifacttest.Files{"app": "2"}))
				_, err := repo.Publish(t.Context(), publish.Request{Project: "myapp", Version: "2", File: file, Channel: "testing"})
				if s.left = 1 << 30; err == nil {
					t.Fatal("publishing was not cut between project and snapshot")
				}
				keys := changed(before, repo.Snapshot())
				if slices.ContainsFunc(keys, func(k string) bool { return strings.HasSuffix(k, ".myapp.json") }) {
					break
				}
			}
			if lost == "timestamp" || lost == "both" {
				remove(t, repo, trust.TimestampKey)
			}
			if lost == "snapshot" {
				for key := range maps.Keys(before) {
					if strings.HasSuffix(key, ".snapshot.json") {
						repo.Replace(key, []byte("{}"))
					}
				}
			}
			if lost == "both" { // and the project's file that is in force
				remove(t, repo, newestOf(before, "myapp"))
				remove(t, repo, newestOf(before, trust.HeadRole("myapp")))
			}
			online := repo.As("snapshot", "timestamp")
			if lost == "snapshot" {
				online.Seen = repo.Seen // a publisher who has kept the snapshot in force
			}
			rebuilt, err := online.Rebuild(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r, err := host.Resolve("base/testing"); err != nil || r.Version != "1" {
				t.Errorf("a host of base sees %v, %v after %+v", r, err, rebuilt)
			}
			if lost != "both" {
				if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "1" || len(rebuilt.Lost) > 0 {
					t.Errorf("a host sees %v, %v, and the rebuild says %+v: want version 1", r, err, rebuilt)
				}
				return
			}
			if len(rebuilt.Missing) != 1 || rebuilt.Missing[0].Role != "myapp" || !slices.Equal(rebuilt.Lost, []string{"myapp"}) {
				t.Errorf("the rebuild says %+v: want myapp to be missing", rebuilt)
			}
			// Its owner takes what is left, signs it, and goes on.
			draft, verified, err := repo.As("snapshot", "timestamp").Export(t.Context(), "myapp")
			if err != nil || verified {
				t.Fatalf("exporting what is left of myapp: verified %v, %v", verified, err)
			}
			keys, err := repo.Keys.Keys("myapp")
			if err != nil {
				t.Fatal(err)
			}
			if err := draft.Sign(keys); err != nil {
				t.Fatal(err)
			}
			if _, err := repo.As("snapshot", "timestamp").Import(t.Context(), draft); err != nil {
				t.Fatal(err)
			}
			repo.Release("myapp", "3", "testing", artifacttest.Files{"app": "3"})
			for kind, h := range map[string]*artifacttest.Host{"old": host, "new": repo.Host()} {
				if r, err := h.Resolve("myapp/testing"); err != nil || r.Version != "3" {
					t.Errorf("an %s host sees %v, %v", kind, r, err)
				}
			}
		})
	}
}
