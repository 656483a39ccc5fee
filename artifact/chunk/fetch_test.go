package chunk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// brought returns a plan for a release that shares no chunks with this host, in a store whose requests are counted.
func brought(t *testing.T) (p *Plan, s store.Store, requests, fetched *atomic.Int64) {
	t.Helper()
	objects := mem.New()
	stream, _ := tree(t, map[string][]byte{"a": noise(1, 1<<20)})
	x, _ := published(t, objects, stream, Known{})
	requests, fetched = &atomic.Int64{}, &atomic.Int64{}
	return NewPlan(x), store.Observe(objects, func(r store.Request) {
		requests.Add(1)
		fetched.Add(r.Bytes)
	}), requests, fetched
}

func opened(t *testing.T, p *Plan, file string) *Cache {
	t.Helper()
	c, err := p.OpenCache(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestDiskErrorIsNotRetriedAtTheStore checks that an error of the disk is not treated as one of the store: a retry
// would fetch the same bytes again.
func TestDiskErrorIsNotRetriedAtTheStore(t *testing.T) {
	plan, s, requests, _ := brought(t)
	cache := opened(t, plan, filepath.Join(t.TempDir(), "chunks"))
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func(own *os.File) { cache.file = own; _ = full.Close() }(cache.file)
	cache.file = full
	err = plan.Fetch(t.Context(), store.Failover(s, s), cache, func(int) {})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v, want the error about a full disk", err)
	}
	if requests.Load() != int64(plan.Requests()) {
		t.Errorf("%d requests were made, want %d", requests.Load(), plan.Requests())
	}
}

// TestReceivedChunksAreNotFetchedAgain checks this for chunks at any position among the missing ones.
func TestReceivedChunksAreNotFetchedAgain(t *testing.T) {
	plan, s, _, fetched := brought(t)
	file := filepath.Join(t.TempDir(), "chunks")
	cache := opened(t, plan, file)
	all := plan.requests[0].chunks
	plan.requests[0].chunks = all[5:10]
	if err := plan.Fetch(t.Context(), s, cache, func(int) {}); err != nil {
		t.Fatal(err)
	}
	plan.requests[0].chunks = all
	again := opened(t, plan, file)
	if err := plan.Fetch(t.Context(), s, again, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if fetched.Load() != plan.Bytes() {
		t.Errorf("fetched %d bytes of chunks that have %d", fetched.Load(), plan.Bytes())
	}
}

// TestChunkThatGrowsIsRefused checks that a hostile store cannot fill the memory with a chunk.
func TestChunkThatGrowsIsRefused(t *testing.T) {
	plan, _, _, _ := brought(t)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := mem.New()
	bomb := encoder.EncodeAll(make([]byte, 8<<20), nil)
	for _, r := range plan.requests {
		pack := make([]byte, r.length)
		for _, c := range r.chunks {
			copy(pack[c.Offset-r.from:][:c.Stored], bomb)
		}
		if _, err := objects.Put(t.Context(), PackKey("myapp", plan.index.Packs[r.pack]), bytes.NewReader(pack),
			r.length, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	cache := opened(t, plan, filepath.Join(t.TempDir(), "chunks"))
	var refused *trust.Refused
	if err := plan.Fetch(t.Context(), objects, cache, func(int) {}); !errors.As(err, &refused) ||
		!errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		t.Errorf("error is %v, want a refusal for its size", err)
	} else if !strings.Contains(refused.Of, ".pack") {
		t.Errorf("the refused object is %q, want the object's name", refused.Of)
	}
}

// TestDamagedCacheIsNoticed checks that chunks that the disk returns with other content make the host fetch in another
// way, as for a changed release.
func TestDamagedCacheIsNoticed(t *testing.T) {
	plan, s, _, _ := brought(t)
	file := filepath.Join(t.TempDir(), "chunks")
	for name, damage := range map[string]func() error{
		"overwritten": func() error { return os.WriteFile(file, make([]byte, 2<<20), 0o600) },
		"cut":         func() error { return os.Truncate(file, 100) },
	} {
		cache := opened(t, plan, file)
		if err := plan.Fetch(t.Context(), s, cache, func(int) {}); err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Assemble(cache); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: error is %v, want the error about changed chunks", name, err)
		}
	}
}

// TestUnreadableFileCountsAsAbsent checks that a file that the disk cannot read counts as absent, so that the release
// can be fetched in another way.
func TestUnreadableFileCountsAsAbsent(t *testing.T) {
	root, err := os.OpenRoot("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// Reading the first page of a process fails with EIO.
	list := &manifest.Manifest{Entries: []manifest.Entry{{Name: "mem", Kind: manifest.File, Size: 1 << 20}}}
	plan, _, _, _ := brought(t)
	stream := NewStream(root, list)
	defer stream.Close()
	plan.Look(t.Context(), stream)
	if plan.Missing() != len(plan.requests[0].chunks) {
		t.Errorf("%d chunks are missing of %d", plan.Missing(), len(plan.index.Chunks))
	}
}

// TestLookStopsWithContext checks that the search in a large tree ends with its context.
func TestLookStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	plan, _, _, _ := brought(t)
	all := plan.Missing()
	stream, _ := tree(t, map[string][]byte{"a": noise(1, 1<<20)})
	cancel()
	if plan.Look(ctx, stream); plan.Missing() != all {
		t.Errorf("%d chunks are missing of %d after a search with a cancelled context", plan.Missing(), all)
	}
}

// TestPipesAreNotWaitedFor checks this for writable files, which a service may replace by a pipe at any time, even
// between lstat and open.
func TestPipesAreNotWaitedFor(t *testing.T) {
	files := map[string][]byte{"a": []byte("content")}
	stream, list := tree(t, files)
	dir := stream.root.Name()
	pipe, name := filepath.Join(dir, "pipe"), filepath.Join(dir, "a")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	swapped := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(unix.AT_FDCWD, pipe, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE); err != nil {
				swapped <- err
				return
			}
		}
		swapped <- nil
	}()
	waits := time.AfterFunc(time.Minute, func() {
		t.Error("reading waits for a writer of a pipe")
		cancel()
		if err := <-swapped; err == nil {
			_, _ = unix.Open(pipe, unix.O_RDWR, 0) // unblocks the reader of the pipe
			_, _ = unix.Open(name, unix.O_RDWR, 0)
		}
		swapped <- nil
	})
	defer waits.Stop()
	there := 0
	for range 20_000 {
		f := stream.file(list.Entries[0])
		if f == nil {
			continue
		}
		there++
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			t.Errorf("the file read has the mode %v, %v", info.Mode(), err)
			_ = f.Close()
			break
		}
		_ = f.Close()
	}
	cancel()
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if there == 0 {
		t.Error("the file was never found")
	}
}

func TestListBeyondAllBoundsIsRefused(t *testing.T) {
	x := &Index{Size: largestSize, List: 1 << 40, Packs: []artifact.Digest{artifact.NewDigest([32]byte{1})}}
	for range 1 << 17 {
		x.Chunks = append(x.Chunks, Chunk{Length: longest(largestSize), Stored: 20})
	}
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(data); err == nil {
		t.Errorf("a list of %d bytes was accepted", x.List)
	}
}
