package attack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// endless is a store whose objects have no end, with some exceptions.
type endless struct {
	store.Store
	key  string
	read int64
}

func (e *endless) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := e.Store.Get(ctx, key, from)
	if err != nil || key != e.key {
		return body, info, err
	}
	info.Size = -1
	return readCloser{io.MultiReader(body, &spaces{&e.read}), body}, info, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

type spaces struct{ read *int64 }

func (s *spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	*s.read += int64(len(p))
	return len(p), nil
}

func TestEndlessData(t *testing.T) {
	repo, _ := published(t)
	all := repo.Snapshot()
	root := repo.Forger("root")
	root.Root(func(*tuf.RootType) {})
	for _, key := range []string{trust.TimestampKey, newest(all, "snapshot.json"), newest(all, "targets.json"),
		newest(all, "myapp~head.json"), trust.RoleKey("root", 2)} {
		t.Run(key, func(t *testing.T) {
			host := repo.Host()
			slow := &endless{Store: repo.Store, key: key}
			host.Store = slow
			_, err := host.Resolve("myapp/testing")
			refused(t, err, trust.CheckLength, key)
			if slow.read > 16<<20 {
				t.Errorf("%d bytes were read of an endless object", slow.read)
			}
		})
	}
	t.Run("an artifact", func(t *testing.T) {
		host := repo.Host()
		client, err := host.Client()
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"})
		if err != nil {
			t.Fatal(err)
		}
		slow := &endless{Store: repo.Store, key: trust.ObjectKey(r)}
		host.Store = slow
		if client, err = host.Client(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil {
			t.Fatal(err)
		}
		refused(t, fetch(t, client, r), trust.CheckLength, "myapp 2")
		if slow.read > 1<<20 {
			t.Errorf("%d bytes were read of an endless object", slow.read)
		}
	})
}

func TestSlowRetrieval(t *testing.T) {
	repo, _ := published(t)
	for name, fault := range map[string]storetest.Fault{
		"no answer":           {Op: store.OpGet, Key: trust.TimestampKey, Hang: true},
		"a body that stalls":  {Op: store.OpGet, Key: trust.TimestampKey, Stall: 10},
		"a byte now and then": {Op: store.OpGet, Key: trust.TimestampKey, Drip: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			client := openOn(t, repo, store.Stack(storetest.NewFaulty(repo.Store, fault), store.Settings{
				Timeout: store.TimeoutPolicy{Answer: 50 * time.Millisecond, Idle: 50 * time.Millisecond},
				Retry:   store.RetryPolicy{Attempts: 1},
			}))
			// The agent limits the time of the whole request, which ends a slow stream.
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := client.Refresh(ctx)
			if exit.Code(err) != exit.Unreachable {
				t.Errorf("%v, exit code %d; want %d", err, exit.Code(err), exit.Unreachable)
			}
		})
	}
}

// openOn returns a host's client on a store other than the repository's own.
func openOn(t *testing.T, repo *artifacttest.Repo, s store.Store) *trust.Client {
	t.Helper()
	client, err := trust.Open(s, repo.Host().Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// mirror answers each request with the store's content of a random time, or with invalid data.
type mirror struct {
	store.Store
	times []map[string][]byte
	rand  *rand.Rand // nil for the first snapshot and no invalid data
}

func (m *mirror) Get(_ context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	at := 0
	if m.rand != nil {
		at = m.rand.IntN(len(m.times))
	}
	data, ok := m.times[at][key]
	if !ok {
		return nil, store.Info{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	if m.rand != nil && m.rand.IntN(20) == 0 && len(data) > 0 {
		data = bytes.Clone(data)
		data[m.rand.IntN(len(data))] ^= 1 << m.rand.IntN(8)
	}
	return io.NopCloser(bytes.NewReader(data[min(from, int64(len(data))):])), store.Info{Key: key, Size: int64(len(data))},
		nil
}

func TestMaliciousMirror(t *testing.T) {
	repo := artifacttest.New(t)
	times, digests := []map[string][]byte{}, map[string]artifact.Digest{}
	for n := range 6 {
		version := fmt.Sprint(n)
		digests[version] = repo.Release("myapp", version, "testing", app(version)).Digest
		repo.Release("base", version, "production", app("base "+version))
		times = append(times, repo.Snapshot())
	}
	random := rand.New(rand.NewPCG(1, 2))
	host := repo.Host()
	newestSeen, got := -1, 0
	for range 200 {
		host.Store = &mirror{repo.Store, times, random}
		r, err := host.Resolve("myapp/testing")
		if err != nil {
			if code := exit.Code(err); code != exit.Refused && code != exit.Unreachable {
				t.Fatalf("%v has exit code %d", err, code)
			}
			continue
		}
		got++
		n := int(r.Version[0] - '0')
		if digests[r.Version] != r.Digest || n < newestSeen {
			t.Fatalf("a host that has read version %d accepts %v", newestSeen, r)
		}
		newestSeen = n
	}
	if got == 0 || newestSeen < 3 {
		t.Errorf("the mirror never answered with valid metadata: %d answers, newest %d", got, newestSeen)
	}
}

func TestStaleMirror(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("one"))
	stale := repo.Snapshot()
	repo.Release("myapp", "2", "testing", app("two"))
	host := repo.Host()
	// A host without newer metadata accepts a stale mirror until its metadata expires, and no longer.
	host.Store = &mirror{repo.Store, []map[string][]byte{stale}, nil}
	sees(t, host, "1")
	host.Store = repo.Store
	sees(t, host, "2")
	host.Store = &mirror{repo.Store, []map[string][]byte{stale}, nil}
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckVersion, "timestamp.json")
}

func TestReplayAcrossProjectsAndChannels(t *testing.T) {
	t.Run("another project's metadata", func(t *testing.T) {
		repo, host := published(t)
		all := repo.Snapshot()
		repo.Forger("timestamp", "snapshot").Forge(func(f *artifacttest.Forged) {
			data := all[newest(all, "base~head.json")]
			version := f.Snapshot.Signed.Meta["myapp~head.json"].Version
			repo.Replace(trust.RoleKey("myapp~head", version), data)
			f.Snapshot.Signed.Meta["myapp~head.json"] = artifacttest.Described(version, data)
		})
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckSignature, "myapp~head.json")
	})
	t.Run("another project's artifact", func(t *testing.T) {
		repo, host := published(t)
		client, err := host.Client()
		if err != nil {
			t.Fatal(err)
		}
		mine, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"})
		if err != nil {
			t.Fatal(err)
		}
		base, err := client.Resolve(t.Context(), artifact.Ref{Project: "base", Channel: "production"})
		if err != nil {
			t.Fatal(err)
		}
		repo.Replace(trust.ObjectKey(mine), repo.Object(trust.ObjectKey(base)))
		err = fetch(t, client, mine)
		var r *trust.Refused
		if !errors.As(err, &r) || r.Check != trust.CheckDigest && r.Check != trust.CheckLength {
			t.Errorf("with base's artifact in place of myapp's: %v", err)
		}
	})
	t.Run("targets of another project in one's own", func(t *testing.T) {
		repo, host := published(t)
		evil := artifacttest.Archive(t, app("evil"))
		attacker := repo.Forger("timestamp", "snapshot", "myapp")
		attacker.Forge(func(f *artifacttest.Forged) { attacker.Sneak(f.Roles["myapp"], "base", "9", "production", evil) })
		client, err := host.Client()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := client.Resolve(t.Context(), artifact.Ref{Project: "base", Channel: "production"}); err != nil ||
			r.Version != "1" {
			t.Errorf("base is %v, %v, after the key of myapp signed another", r, err)
		}
		_, err = client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "production"})
		refused(t, err, trust.CheckForm, "myapp/production")
	})
	t.Run("a channel for another", func(t *testing.T) {
		repo := artifacttest.New(t)
		repo.Release("myapp", "1", "production", app("one"))
		repo.Release("myapp", "2", "testing", app("two"))
		host := repo.Host()
		repo.Forger("timestamp", "snapshot").Forge(func(f *artifacttest.Forged) {
			channels, err := trust.Channels(f.Roles["myapp"])
			if err != nil {
				t.Fatal(err)
			}
			channels["production"] = channels["testing"]
			if err := trust.SetChannels(f.Roles["myapp"], channels); err != nil {
				t.Fatal(err)
			}
		})
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckSignature, "myapp~head.json")
	})
	t.Run("another store", func(t *testing.T) {
		repo, host := published(t)
		other, _ := published(t)
		repo.Restore(other.Snapshot())
		_, err := host.Resolve("myapp/testing")
		refused(t, err, trust.CheckPin, "the store")
	})
}

func TestCachedRoleIsVerifiedUnderItsCurrentDelegator(t *testing.T) {
	repo, host := published(t)
	next := repo.Aside()
	if _, err := next.New("myapp", 1); err != nil {
		t.Fatal(err)
	}
	fresh, err := next.Public("myapp")
	if err != nil {
		t.Fatal(err)
	}
	// Only targets changes: the host's copy of myapp's metadata is current.
	owner := repo.As("targets", "snapshot", "timestamp")
	owner.AtOnce = true
	if err := projects.ReplaceKeys(t.Context(), owner, "myapp", fresh...); err != nil {
		t.Fatal(err)
	}
	_, err = host.Resolve("myapp/testing")
	refused(t, err, trust.CheckSignature, "myapp~head.json")
	if base, err := host.Resolve("base/production"); err != nil || base.Version != "1" {
		t.Errorf("base is %v, %v, after myapp's key was revoked", base, err)
	}
}

// TestEveryDamageIsRefused damages every file of a store in every possible way at every byte.
func TestEveryDamageIsRefused(t *testing.T) {
	repo, _ := published(t)
	all := repo.Snapshot()
	needed := []string{trust.TimestampKey, newest(all, "snapshot.json"), newest(all, "targets.json"),
		newest(all, "myapp~head.json")}
	random := rand.New(rand.NewPCG(3, 4))
	for _, key := range needed {
		good := all[key]
		damages := map[string][]byte{
			"empty": {}, "null": []byte("null"), "a list": []byte("[]"), "text": []byte("sign in"),
			"twice": append(bytes.Clone(good), good...), "deep": []byte(strings.Repeat("[", 100_000)),
			"unsigned":       bytes.Replace(good, []byte(`"signatures":[{`), []byte(`"signatures":[],"x":[{`), 1),
			"another's type": bytes.Replace(good, []byte(`"_type":"`), []byte(`"_type":"x`), 1),
		}
		for range 12 {
			at := random.IntN(len(good))
			flipped := bytes.Clone(good)
			flipped[at] ^= 1 << random.IntN(8)
			damages[fmt.Sprintf("bit of byte %d", at)] = flipped
			damages[fmt.Sprintf("cut at %d", at)] = good[:at]
		}
		for name, data := range damages {
			repo.Replace(key, data)
			resolved, err := repo.Host().Resolve("myapp/testing")
			if err == nil && resolved.Version == "2" && strings.HasPrefix(name, "bit") {
				continue // a letter of a key that JSON reads in either case; the signed content is the same
			}
			var r *trust.Refused
			if !errors.As(err, &r) || exit.Code(err) != exit.Refused {
				t.Errorf("%s, %s: %v, want it refused", key, name, err)
			}
		}
		repo.Replace(key, good)
	}
}

func TestForgedAndTruncatedIndexes(t *testing.T) {
	repo := artifacttest.New(t)
	noise := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // never fails
	release := repo.Release("myapp", "1", "testing", app(string(noise)))
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []trust.Kind{trust.KindBlocks, trust.KindIndex} {
		_, digest, ok := client.Sidecar(release, kind)
		if !ok {
			t.Fatalf("%s has no signed %s", release, kind)
		}
		key := trust.SidecarKey(release, kind, digest)
		good := repo.Object(key)
		flipped := bytes.Clone(good)
		flipped[len(flipped)/2] ^= 1
		for name, c := range map[string]struct {
			data  []byte
			check trust.Check
		}{
			"truncated": {good[:len(good)-1], trust.CheckLength}, "empty": {nil, trust.CheckLength},
			"longer": {append(bytes.Clone(good), 0), trust.CheckLength}, "forged": {flipped, trust.CheckDigest},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				repo.Replace(key, c.data)
				defer repo.Replace(key, good)
				_, err := client.FetchSidecar(t.Context(), release, kind)
				refused(t, err, c.check, "myapp")
			})
		}
		t.Run(string(kind)+" signed and still nonsense", func(t *testing.T) { nonsense(t, repo, release, kind, good) })
	}
}

// nonsense signs damaged lists with the project's key: signed data must also be parsed with care.
func nonsense(t *testing.T, repo *artifacttest.Repo, r artifact.Release, kind trust.Kind, good []byte) {
	t.Helper()
	for cut := range slices.Values([]int{0, 1, 8, len(good) / 2, len(good) - 1}) {
		data := bytes.Clone(good[:cut])
		if cut == 0 {
			data = bytes.Repeat([]byte{0xff}, 64)
		}
		attacker := repo.Forger("timestamp", "snapshot", "myapp")
		var digest artifact.Digest
		attacker.Forge(func(f *artifacttest.Forged) {
			digest = attacker.Sign(f.Roles["myapp"], trust.SidecarTarget(r, kind), data)
		})
		repo.Replace(trust.SidecarKey(r, kind, digest), data)
		client, err := repo.Host().Client()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil {
			t.Fatal(err)
		}
		signed, err := client.FetchSidecar(t.Context(), r, kind)
		if err != nil {
			t.Fatal(err)
		}
		if kind == trust.KindBlocks {
			_, err = trust.ParseBlocks(signed)
		} else {
			_, err = chunk.Parse(signed)
		}
		refused(t, err, trust.CheckForm, "myapp")
	}
}

func TestArtifactCutAtAnEntry(t *testing.T) {
	repo := artifacttest.New(t)
	files := artifacttest.Files{}
	for n := range 20 {
		files[fmt.Sprintf("file-%02d", n)] = strings.Repeat("content ", 100)
	}
	file := filepath.Join(t.TempDir(), "plain.tar")
	if err := os.WriteFile(file, artifacttest.PlainTar(t, files), 0o600); err != nil {
		t.Fatal(err)
	}
	good := artifacttest.PlainTar(t, files)
	release := repo.ReleaseFile("myapp", "1", "testing", file)
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	for _, cut := range artifacttest.Boundaries(good) {
		repo.Replace(trust.ObjectKey(release), good[:cut])
		refused(t, fetch(t, client, release), trust.CheckLength, "myapp 1")
	}
	// An archive of the right length is also refused.
	for _, cut := range artifacttest.Boundaries(good) {
		padded := make([]byte, len(good))
		copy(padded, good[:cut])
		if bytes.Equal(padded, good) {
			continue
		}
		repo.Replace(trust.ObjectKey(release), padded)
		refused(t, fetch(t, client, release), trust.CheckDigest, "myapp 1")
	}
}
