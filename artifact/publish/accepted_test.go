package publish_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// public returns the public key of a publisher's role, and its ID.
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

// TestKeysOfAnotherStoreWriteNothing checks that no command writes to a store with the keys of another one.
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
	draft, _, err := drafts.Export(t.Context(), ours.Publisher, tuf.RoleRoot)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tar.zst")
	artifacttest.WriteFile(t, file, artifacttest.Archive(t, artifacttest.Files{"app": "2"}))
	before := theirs.Snapshot()
	for name, try := range map[string]func(p *publish.Publisher) error{
		"root change": func(p *publish.Publisher) error {
			_, err := roots.Apply(t.Context(), p, roots.Change{Renew: true})
			return err
		},
		"root change at once": func(p *publish.Publisher) error {
			p.AtOnce = true
			_, err := roots.Apply(t.Context(), p, roots.Change{Remove: map[string][]string{"timestamp": {id}},
				Threshold: map[string]int{"timestamp": 1}})
			return err
		},
		"rotate root": func(p *publish.Publisher) error {
			_, err := roots.Rotate(t.Context(), p, "root", ours.Aside())
			return err
		},
		"rotate timestamp": func(p *publish.Publisher) error {
			_, err := roots.Rotate(t.Context(), p, "timestamp", ours.Aside())
			return err
		},
		"rotate myapp": func(p *publish.Publisher) error {
			_, err := roots.Rotate(t.Context(), p, "myapp", ours.Aside())
			return err
		},
		"refresh": func(p *publish.Publisher) error { _, err := refresh.Roles(t.Context(), p, 0); return err },
		"rebuild": func(p *publish.Publisher) error { _, err := recovery.Rebuild(t.Context(), p); return err },
		"import":  func(p *publish.Publisher) error { _, err := drafts.Import(t.Context(), p, draft); return err },
		"init":    func(p *publish.Publisher) error { _, err := roots.Init(t.Context(), p, 0); return err },
		"gc": func(p *publish.Publisher) error {
			_, err := collect.Garbage(t.Context(), p, collect.Grace{}, false)
			return err
		},
		"publish": func(p *publish.Publisher) error {
			_, err := releases.Publish(t.Context(), p, releases.Request{Project: "myapp", Version: "2", File: file,
				Channel: "testing"})
			return err
		},
		"promote": func(p *publish.Publisher) error {
			_, err := releases.Promote(t.Context(), p, "myapp", "testing", "production")
			return err
		},
	} {
		for _, their := range []string{"their first root", "their second root"} {
			lost := *ours.Publisher
			lost.Store = theirs.Store
			if err := try(&lost); err == nil {
				t.Errorf("%s for %s succeeds with the keys of another store", name, their)
			}
			if keys := artifacttest.Changed(before, theirs.Snapshot()); len(keys) > 0 {
				t.Fatalf("%s for %s with the keys of another store wrote %v", name, their, keys)
			}
		}
	}
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Error(err)
	}
}

// TestRotationWithRootKeyOnly checks that the root's holder alone can rotate some keys; for the others nothing is
// written, and the steps in the error complete the rotation, while hosts accept the store all the time.
func TestRotationWithRootKeyOnly(t *testing.T) {
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
						t.Fatalf("%s: %s resolves %v", when, name, err)
					}
				}
			}
			follows("before")
			holder := repo.As("root", role)
			next := repo.Aside()
			before := repo.Snapshot()
			_, err := roots.Rotate(t.Context(), holder, role, next)
			follows("after rotating " + role)
			if role == "timestamp" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var unaccepted *publish.Unaccepted
			if !errors.As(err, &unaccepted) || !strings.Contains(unaccepted.Hint(), "--add-key") {
				t.Fatalf("rotating %s with only the root's key: %v, want steps", role, err)
			}
			if keys := artifacttest.Changed(before, repo.Snapshot()); len(keys) > 0 {
				t.Fatalf("rotating %s was refused, and wrote %v", role, keys)
			}
			fresh, err := next.Public(role)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := roots.Apply(t.Context(), holder, roots.Change{Add: map[string][]*tuf.Key{role: fresh}}); err != nil {
				t.Fatal(err)
			}
			follows("with the new key let in")
			online := repo.As("snapshot", "timestamp")
			if role == "snapshot" {
				copyKey(t, next.Dir, "snapshot", online.Keys.Dir, "snapshot-2")
				_, err = refresh.Roles(t.Context(), online, 0)
			} else {
				var draft *publish.Draft
				if draft, _, err = drafts.Export(t.Context(), online, role); err == nil {
					keys, _ := next.Keys(role)
					if err = draft.Sign(keys); err == nil {
						_, err = drafts.Import(t.Context(), online, draft)
					}
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			follows("with the new key's signature")
			if _, err := roots.Rotate(t.Context(), holder, role, next); err != nil {
				t.Fatal(err)
			}
			follows("in the end")
		})
	}
}

// TestEveryChangeInterruptedAtEveryWrite interrupts each change of keys at each write: hosts accept the store at every
// moment, and the same command continues.
func TestEveryChangeInterruptedAtEveryWrite(t *testing.T) {
	t.Parallel()
	type change func(*artifacttest.Repo, publish.Keyring) error
	rotate := func(role string) change {
		return func(r *artifacttest.Repo, next publish.Keyring) error {
			_, err := roots.Rotate(t.Context(), r.Publisher, role, next)
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
			_, err = roots.Apply(t.Context(), r.Publisher, roots.Change{Add: map[string][]*tuf.Key{"targets": keys},
				Threshold: map[string]int{"targets": 2}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 0; cut < 20; cut++ {
				s := &artifacttest.Failing{Store: mem.New(), Left: 1 << 30}
				repo := artifacttest.On(t, s)
				repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
				old := repo.Host()
				sees := func(when string) {
					t.Helper()
					for kind, host := range map[string]*artifacttest.Host{"an old host": old, "a new host": repo.Host()} {
						if _, err := host.Resolve("myapp/testing"); err != nil {
							t.Fatalf("%s after %d writes, %s: %s resolves %v", name, cut, when, kind, err)
						}
					}
				}
				sees("before")
				next := repo.Aside()
				s.Left = cut
				first := run(repo, next)
				sees("cut")
				// Interrupt it a second time, and then no more.
				s.Left = cut
				second := run(repo, next)
				sees("cut twice")
				s.Left = 1 << 30
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

// copyKey copies a key pair to another directory of keys, under another name.
func copyKey(t *testing.T, from, name, to, as string) {
	t.Helper()
	for _, suffix := range []string{".key", ".pub"} {
		data, err := os.ReadFile(filepath.Join(from, name+suffix))
		if err != nil {
			t.Fatal(err)
		}
		artifacttest.WriteFile(t, filepath.Join(to, as+suffix), data)
	}
}
