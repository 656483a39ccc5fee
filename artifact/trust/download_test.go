package trust_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

const block = 256 << 10

// noise returns a text that does not compress, the same for the same seed.
func noise(seed byte, size int) string {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return string(data)
}

// large publishes an artifact of a dozen blocks.
func large(repo *artifacttest.Repo) artifact.Release {
	return repo.Release("myapp", "1", "testing", artifacttest.Files{"data": noise(1, 12*block)})
}

// download fetches a release by its blocks from a store, into a file that may already contain some.
func download(t *testing.T, repo *artifacttest.Repo, s store.Store,
	r artifact.Release, file string) (got []byte, progress int, err error) {
	t.Helper()
	host := repo.Host()
	host.Store = s
	client, err := host.Client()
	if err != nil {
		return nil, 0, err
	}
	if _, err := client.Resolve(t.Context(), artifact.Ref{Project: r.Project, Channel: "testing"}); err != nil {
		return nil, 0, err
	}
	signed, err := client.FetchSidecar(t.Context(), r, trust.KindBlocks)
	if err != nil {
		return nil, 0, err
	}
	blocks, err := trust.ParseBlocks(signed)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Download(t.Context(), blocks, f, func(n int) { progress += n })
	if err != nil {
		t.Fatal(err)
	}
	got, err = io.ReadAll(v.Reader())
	return got, progress, errors.Join(err, v.Close())
}

func TestDownloadGivesTheSignedBytes(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	got, progress, err := download(t, repo, repo.Store, r, filepath.Join(t.TempDir(), "part"))
	if err != nil || !bytes.Equal(got, repo.Object(trust.ObjectKey(r))) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if progress != int(r.Length) {
		t.Errorf("progress has %d bytes, want %d", progress, r.Length)
	}
}

// TestDownloadResumes checks that blocks of a killed run are used if they are right, and fetched again otherwise.
func TestDownloadResumes(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	want := repo.Object(trust.ObjectKey(r))
	file := filepath.Join(t.TempDir(), "part")
	left := bytes.Clone(want[:7*block+1000])
	left[3*block+5]++                         // a block that the disk damaged
	copy(left[5*block:], make([]byte, block)) // a block that was not written: a hole
	if err := os.WriteFile(file, left, 0o600); err != nil {
		t.Fatal(err)
	}
	var fetched atomic.Int64
	counting := store.Observe(repo.Store, func(q store.Request) {
		if q.Key == trust.ObjectKey(r) {
			fetched.Add(q.Bytes)
		}
	})
	got, _, err := download(t, repo, counting, r, file)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if missing := int64(len(want)) - 5*block; fetched.Load() != missing {
		t.Errorf("fetched %d bytes, want the %d that were missing", fetched.Load(), missing)
	}
}

// TestDownloadFailsOver checks that a mirror is used in the middle of a download, also if the first store sends wrong
// bytes.
func TestDownloadFailsOver(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	want := repo.Object(trust.ObjectKey(r))
	lying := mem.New()
	for key, data := range repo.Snapshot() {
		if key == trust.ObjectKey(r) {
			data = bytes.Clone(data)
			data[6*block]++
		}
		if _, err := lying.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	away := &store.Error{Op: store.OpGet, Kind: store.ErrUnreachable}
	broken := storetest.NewFaulty(repo.Store, storetest.Fault{Op: store.OpGet, Key: trust.ObjectKey(r),
		Cut: 2*block + 77, Err: away})
	for name, first := range map[string]store.Store{"breaks off": broken, "lies": lying} {
		got, _, err := download(t, repo, store.Failover(first, repo.Store), r, filepath.Join(t.TempDir(), "part"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("a store that %s: got %d bytes, %v", name, len(got), err)
		}
	}
	var refused *trust.Refused
	file := filepath.Join(t.TempDir(), "part")
	if got, _, err := download(t, repo, lying, r, file); !errors.As(err, &refused) || len(got) > 6*block {
		t.Errorf("a lying store alone: got %d bytes, %v, want it refused before byte %d", len(got), err, 6*block)
	}
	changed := bytes.Clone(want[6*block : 6*block+64])
	changed[0]++
	if kept, err := os.ReadFile(file); err != nil || bytes.Contains(kept, changed) {
		t.Errorf("the refused bytes are on the disk (%v)", err)
	}
}

// TestSidecarFailsOver checks that a list that one store changed is fetched from another one.
func TestSidecarFailsOver(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	lying := mem.New()
	for key, data := range repo.Snapshot() {
		if filepath.Ext(key) == ".blocks" {
			data = bytes.Clone(data)
			data[40]++
		}
		if _, err := lying.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := download(t, repo, store.Failover(lying, repo.Store), r, filepath.Join(t.TempDir(), "part"))
	if err != nil || !bytes.Equal(got, repo.Object(trust.ObjectKey(r))) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	var refused *trust.Refused
	if _, _, err := download(t, repo, store.Failover(lying, lying), r,
		filepath.Join(t.TempDir(), "part")); !errors.As(err, &refused) || len(refused.By) == 0 {
		t.Errorf("error is %v, want a refusal that names the signers", err)
	}
}

// TestDownloadIsStopped checks that a cancelled download ends, also if all blocks are in the file and are only read.
func TestDownloadIsStopped(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resolve(t.Context(), artifact.Ref{Project: r.Project, Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	signed, err := client.FetchSidecar(t.Context(), r, trust.KindBlocks)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := trust.ParseBlocks(signed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(file, repo.Object(trust.ObjectKey(r)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	v, err := client.Download(ctx, blocks, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, r.Length-3*block)
	if _, err := io.ReadFull(v.Reader(), whole); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, iotest.OneByteReader(v.Reader())); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the cancellation", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestDownloadOverABadLine checks that a connection that is reset repeatedly costs requests, and that no byte is
// fetched twice.
func TestDownloadOverABadLine(t *testing.T) {
	repo := artifacttest.New(t)
	r := large(repo)
	reset := &store.Error{Op: store.OpGet, Kind: store.ErrUnreachable, Again: true}
	line := storetest.NewFaulty(repo.Store, storetest.Fault{Op: store.OpGet, Key: trust.ObjectKey(r),
		Cut: 100_000, Err: reset})
	var fetched atomic.Int64
	s := store.Stack(line, store.Settings{
		Retry: store.RetryPolicy{Attempts: 6, First: time.Millisecond, Longest: time.Millisecond},
		Observe: func(q store.Request) {
			if q.Key == trust.ObjectKey(r) {
				fetched.Add(q.Bytes)
			}
		},
	})
	got, _, err := download(t, repo, s, r, filepath.Join(t.TempDir(), "part"))
	if err != nil || !bytes.Equal(got, repo.Object(trust.ObjectKey(r))) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if fetched.Load() != r.Length {
		t.Errorf("fetched %d bytes of an artifact of %d", fetched.Load(), r.Length)
	}
}

func TestSmallArtifactsHaveNoBlocks(t *testing.T) {
	repo := artifacttest.New(t)
	r := repo.Release("myapp", "1", "testing", artifacttest.Files{"a": "b"})
	if _, _, err := download(t, repo, repo.Store, r,
		filepath.Join(t.TempDir(), "part")); !errors.Is(err, trust.ErrNoSidecar) {
		t.Errorf("error is %v, want the error about missing blocks", err)
	}
}

func TestForgedListsOfBlocksAreRefused(t *testing.T) {
	for name, forge := range map[string]func([]byte) []byte{
		"changed":   func(b []byte) []byte { b[40]++; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-32] },
		"extended":  func(b []byte) []byte { return append(b, make([]byte, 32)...) },
		"empty":     func([]byte) []byte { return nil },
	} {
		repo := artifacttest.New(t)
		r := large(repo)
		for info, err := range repo.Store.List(t.Context(), "deploy/") {
			if err == nil && filepath.Ext(info.Key) == ".blocks" {
				repo.Replace(info.Key, forge(repo.Object(info.Key)))
			}
		}
		var refused *trust.Refused
		if _, _, err := download(t, repo, repo.Store, r, filepath.Join(t.TempDir(), "part")); !errors.As(err, &refused) {
			t.Errorf("a list that was %s: %v, want it refused", name, err)
		}
	}
}

// TestPinIsFinished checks that a host that lost power between writing the two files of a pin is pinned by the next
// attempt.
func TestPinIsFinished(t *testing.T) {
	repo := artifacttest.New(t)
	dir := t.TempDir()
	if err := trust.Pin(dir, repo.Root()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "root.json")); err != nil {
		t.Fatal(err)
	}
	err := trust.Pin(dir, repo.Root())
	if pinned, lookErr := trust.Pinned(dir); err != nil || lookErr != nil || !pinned {
		t.Errorf("the pinned root is %v, %v, %v", pinned, err, lookErr)
	}
}
