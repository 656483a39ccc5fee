package trust_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// app returns the tree of most releases here.
func app(content string) artifacttest.Files { return artifacttest.Files{"app": content} }

// refused checks that an error is a refusal by the given check.
func refused(t *testing.T, err error, check trust.Check) {
	t.Helper()
	var r *trust.Refused
	if !errors.As(err, &r) || r.Check != check {
		t.Fatalf("error is %v, want a refusal by the %s check", err, check)
	}
	if diag.HintOf(err) == "" {
		t.Errorf("%v has no hint", err)
	}
}

func TestOlderStoreIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	host := repo.Host()
	repo.Release("myapp", "1", "testing", app("1"))
	old := repo.Snapshot()
	repo.Release("myapp", "2", "testing", app("2"))
	if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "2" {
		t.Fatalf("testing is %v, %v", r, err)
	}
	repo.Restore(old)
	_, err := host.Resolve("myapp/testing")
	refused(t, err, trust.CheckVersion)
}

func TestFrozenStoreIsRefusedWhenItsTimestampExpires(t *testing.T) {
	repo := artifacttest.New(t)
	host := repo.Host()
	repo.Release("myapp", "1", "testing", app("1"))
	for days, ok := range map[int]bool{13: true, 15: false} {
		host.Now = func() time.Time { return time.Now().AddDate(0, 0, days) }
		_, err := host.Resolve("myapp/testing")
		if ok && err != nil {
			t.Errorf("after %d days: %v", days, err)
		}
		if !ok {
			refused(t, err, trust.CheckExpiry)
		}
	}
}

func TestClockBehindMetadataIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	host := repo.Host()
	host.Now = func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }
	_, err := host.Client()
	refused(t, err, trust.CheckClock)
}

func TestMixedMetadataIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	key := newest(repo, ".myapp~head.json")
	repo.Release("myapp", "2", "testing", app("2"))
	// The new name of the snapshot gets the project's older metadata.
	repo.Replace(newest(repo, ".myapp~head.json"), repo.Object(key))
	_, err := repo.Host().Resolve("myapp/testing")
	refused(t, err, trust.CheckDigest)
}

// newest returns the key of the newest version of a metadata file.
func newest(repo *artifacttest.Repo, suffix string) string {
	best, length := "", 0
	for key := range repo.Snapshot() {
		if strings.HasSuffix(key, suffix) && (len(key) > length || len(key) == length && key > best) {
			best, length = key, len(key)
		}
	}
	return best
}

func TestRevokedKeyIsRefusedEvenFromTheCache(t *testing.T) {
	ctx := context.Background()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	host := repo.Host()
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	// The next targets delegate myapp to another key; the project's old metadata, which the host has verified and kept,
	// is still current in the snapshot.
	other := publish.Keyring{Dir: t.TempDir()}
	if _, err := other.New("myapp", 1); err != nil {
		t.Fatal(err)
	}
	keys, err := other.Public("myapp")
	if err != nil {
		t.Fatal(err)
	}
	repo.AtOnce = true
	if err := projects.ReplaceKeys(ctx, repo.Publisher, "myapp", keys...); err != nil {
		t.Fatal(err)
	}
	_, err = host.Resolve("myapp/testing")
	refused(t, err, trust.CheckSignature)
}

func TestTamperedArtifactsAreRefused(t *testing.T) {
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1", "testing", app("1"))
	good := repo.Object(trust.ObjectKey(release))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		data  []byte
		check trust.Check
	}{
		"one bit":        {flipped, trust.CheckDigest},
		"interrupted":    {good[:len(good)-1], trust.CheckLength},
		"something more": {append(bytes.Clone(good), 0), trust.CheckLength},
		"nothing":        {nil, trust.CheckLength},
	} {
		t.Run(name, func(t *testing.T) {
			repo.Replace(trust.ObjectKey(release), c.data)
			client, err := repo.Host().Client()
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			_, err = client.Fetch(context.Background(), release, file, nil)
			refused(t, err, c.check)
		})
	}
}

func TestEndlessMetadataIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	endless := bytes.Repeat([]byte(" "), 1<<20)
	repo.Replace(trust.TimestampKey, append(endless, repo.Object(trust.TimestampKey)...))
	_, err := repo.Host().Client()
	refused(t, err, trust.CheckLength)
}

func TestMalformedMetadataIsRefusedAndNeverPanics(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	good := repo.Object(trust.TimestampKey)
	for name, data := range map[string]string{
		"not JSON":    "no JSON",
		"empty":       "",
		"null":        "null",
		"another one": string(repo.Object(newest(repo, ".snapshot.json"))),
		"no snapshot": strings.Replace(string(good), `"snapshot.json"`, `"other.json"`, 1),
		"no version":  strings.Replace(string(good), `"version"`, `"vversion"`, 1),
		"cut":         string(good[:len(good)/2]),
		"two values":  strings.Replace(string(good), `"signed":{`, `"signed":{"version":900,`, 1),
		"other case":  strings.Replace(string(good), `"signed":{`, `"signed":{"Version":900,`, 1),
		"two signed":  strings.Replace(string(good), `"signed":{`, `"signed":{},"signed":{`, 1),
		"a float":     strings.Replace(string(good), `"signed":{`, `"signed":{"later":1e3,`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			repo.Replace(trust.TimestampKey, []byte(data))
			_, err := repo.Host().Client()
			var r *trust.Refused
			if !errors.As(err, &r) {
				t.Fatalf("error is %v, want a refusal", err)
			}
		})
	}
}

func TestPinIsForOneRoot(t *testing.T) {
	repo, other := artifacttest.New(t), artifacttest.New(t)
	host := repo.Host()
	if err := trust.Pin(host.Dir, repo.Root()); err != nil {
		t.Errorf("the same root again: %v", err)
	}
	refused(t, trust.Pin(host.Dir, other.Root()), trust.CheckPin)

	if _, err := trust.FirstRoot(context.Background(), repo.Store,
		artifact.Digest("sha256:"+strings.Repeat("0", 64))); err == nil {
		t.Error("a first root with another digest was accepted")
	} else {
		refused(t, err, trust.CheckPin)
	}
	if err := trust.Pin(t.TempDir(), []byte("{}")); err == nil {
		t.Error("an empty document was pinned")
	}
}

// TestCheckThatFindsNothingNewCostsOneRequest checks this, and that a store without versions of objects costs one more
// request.
func TestCheckThatFindsNothingNewCostsOneRequest(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("base", "1", "production", app("1"))
	repo.Release("myapp", "1", "testing", app("1"))
	host := repo.Host()
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	requests, bytes := 0, int64(0)
	host.Store = store.Observe(repo.Store, func(r store.Request) {
		requests++
		bytes += r.Bytes
	})
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	if requests != 1 || bytes != 0 {
		t.Errorf("%d requests, %d bytes; want 1 request and no bytes", requests, bytes)
	}
	host.Store = store.Observe(nameless{repo.Store}, func(r store.Request) {
		requests++
		bytes += r.Bytes
	})
	requests, bytes = 0, 0
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	if requests > 2 || bytes > 5000 {
		t.Errorf("a store without ETags: %d requests, %d bytes; want 2 requests under 5 KB", requests, bytes)
	}
}

// nameless is a store that reports no versions of objects, like some web servers.
type nameless struct{ store.Store }

func (s nameless) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := s.Store.Get(ctx, key, from)
	info.ETag = ""
	return body, info, err
}

// TestNewRootIsFoundWithUnchangedTimestamp checks this for a host that is about to deploy a new release.
func TestNewRootIsFoundWithUnchangedTimestamp(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	host := repo.Host()
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	looked := false
	host.Store = store.Observe(repo.Store, func(r store.Request) {
		looked = looked ||
			strings.HasSuffix(r.Key, ".root.json")
	})
	if _, err := roots.Rotate(t.Context(), repo.Publisher, "root", repo.Aside()); err != nil {
		t.Fatal(err)
	}
	looked = false
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	repo.Release("myapp", "2", "testing", app("2"))
	if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "2" || !looked {
		t.Errorf("%+v, %v; the host looked for a newer root: %v", r, err, looked)
	}
}

func TestForbiddenMeansAbsentWhereTheTimestampIsReadable(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", app("1"))
	host := repo.Host()
	host.Store = forbidding{repo.Store, false}
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Errorf("a bucket that may not be listed: %v", err)
	}
	host.Store = forbidding{repo.Store, true}
	if _, err := host.Resolve("myapp/testing"); !errors.Is(err, store.ErrForbidden) {
		t.Errorf("a bucket that may not be read: %v, want ErrForbidden", err)
	}
}

func TestTargetsOutsideAProjectsPathDoNotCount(t *testing.T) {
	role := tuf.NewTargets(time.Now().UTC())
	file := tuf.TargetFile()
	file.Hashes["sha256"] = make([]byte, 32)
	for _, target := range []string{"deploy/base/1.tar.zst", "deploy/myapp/x/1.tar.zst", "1.tar.zst",
		"deploy/myapp/..tar.zst"} {
		role.Signed.Targets[target] = file
	}
	if got := trust.Releases("myapp", role); len(got) != 0 {
		t.Errorf("releases outside of the project's path count: %v", got)
	}
}

func FuzzRefusalsNeverPanic(f *testing.F) {
	f.Add([]byte(`{"signed":{"_type":"timestamp"},"signatures":[]}`))
	f.Add([]byte(
		`{"signed":{"_type":"root","keys":{"a":{"keytype":"ed25519","keyval":{"public":"00"}}},` +
			`"roles":{"root":{"keyids":["a"],"threshold":1}}},"signatures":[{"keyid":"a","sig":"00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := trust.Pin(t.TempDir(), data); err == nil && !json.Valid(data) {
			t.Error("something that is not JSON was pinned")
		}
	})
}
