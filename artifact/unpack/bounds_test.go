package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// packed returns a small artifact with many headers.
func packed(t *testing.T, headers func(yield func(*tar.Header) bool)) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for h := range headers {
		h.Mode = 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inspect reads an artifact by the rules of unpacking.
func inspect(ctx context.Context, data []byte) (*rules, error) {
	r := newRules(Limits{}.withDefaults(), int64(len(data)))
	return r, walkTar(ctx, bytes.NewReader(data), artifact.TarZst, r, discard{})
}

// kept returns the number of bytes in use after an inspection while its rules are in use.
func kept(t *testing.T, data []byte) (*rules, int64, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := inspect(context.Background(), data)
	runtime.GC()
	runtime.ReadMemStats(&after)
	return r, int64(after.HeapAlloc) - int64(before.HeapAlloc), err
}

// TestHostileArtifactsUseBoundedResources unpacks artifacts that once took gigabytes or minutes because of names, link
// targets and links through other links.
func TestHostileArtifactsUseBoundedResources(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes long, and its result does not depend on the user")
	}
	for name, c := range map[string]struct {
		headers func(yield func(*tar.Header) bool)
		rule    string
	}{
		"link targets of a megabyte": {func(yield func(*tar.Header) bool) {
			for i := range 30 {
				if !yield(&tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprint("l", i),
					Linkname: strings.Repeat("a", 1000_000)}) {
					return
				}
			}
		}, "of more than 4000 bytes"},
		"link targets that are just allowed": {func(yield func(*tar.Header) bool) {
			for i := range 40_000 {
				if !yield(&tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprint("l", i), Linkname: strings.Repeat("a", 3900)}) {
					return
				}
			}
		}, "hold more than"},
		"names of directories": {func(yield func(*tar.Header) bool) {
			for i := range 5_000 {
				if !yield(&tar.Header{Typeflag: tar.TypeReg,
					Name: fmt.Sprintf("%d/%sx", i, strings.Repeat(strings.Repeat("n", 60)+"/", 60))}) {
					return
				}
			}
		}, "paths of the directories"},
	} {
		t.Run(name, func(t *testing.T) {
			data := packed(t, c.headers)
			r, cost, err := kept(t, data)
			var hostile *Hostile
			if !errors.As(err, &hostile) || !strings.Contains(err.Error(), c.rule) {
				t.Errorf("an artifact of %d bytes: %v, want a refusal with %q", len(data), err, c.rule)
			}
			if cost > 400<<20 {
				t.Errorf("an artifact of %d bytes kept %d bytes", len(data), cost)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			runtime.KeepAlive(r)
		})
	}
}

// chain returns links, each of which leads through the next one at least twice, so that following one takes the maximum
// number of steps.
func chain(links int) func(yield func(*tar.Header) bool) {
	return func(yield func(*tar.Header) bool) {
		if !yield(&tar.Header{Typeflag: tar.TypeDir, Name: "d"}) {
			return
		}
		for i := range links {
			target := fmt.Sprintf("l%d/%s../l%d", i+1, strings.Repeat("d/../", 300), i+1)
			if !yield(&tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprint("l", i), Linkname: target}) {
				return
			}
		}
	}
}

// TestLinksThroughLinksTakeBoundedSteps counts steps instead of time: an artifact of 28 KB once took 47 s.
func TestLinksThroughLinksTakeBoundedSteps(t *testing.T) {
	data := packed(t, chain(3000))
	r, err := inspect(context.Background(), data)
	if err == nil || !strings.Contains(err.Error(), "lead through one another") {
		t.Errorf("an artifact of %d bytes: %v, want a refusal of its links", len(data), err)
	}
	f := &follower{links: r.links, left: linkSteps + stepsEachLink*len(r.links)}
	most := f.left
	for name, target := range r.links {
		if _, err := f.staysInside(context.Background(), "d", target); err != nil {
			t.Fatal(name, err)
		}
	}
	if f.taken > most {
		t.Errorf("following the links took %d steps for %d links, want at most %d", f.taken, len(r.links), most)
	}
}

// TestManyValidLinks checks that the limits allow a large tree of links.
func TestManyValidLinks(t *testing.T) {
	_, err := inspect(context.Background(), packed(t, func(yield func(*tar.Header) bool) {
		for i := range 50_000 {
			if !yield(&tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprintf("a/b/c/d/e/node_modules/.bin/tool%d", i),
				Linkname: fmt.Sprintf("../../../../../x/lib/tool%d/bin/cli.js", i)}) {
				return
			}
		}
	}))
	if err != nil {
		t.Error(err)
	}
}

// TestCancelled ends each part of unpacking with its context: links, and content that never ends.
func TestCancelled(t *testing.T) {
	r, err := inspect(context.Background(), packed(t, chain(3000)))
	if err == nil {
		t.Fatal("the links were accepted")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.checkLinks(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("following links after a cancel: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	endless := io.MultiReader(&head, zeros{cancel})
	_, err = Inspect(ctx, endless, artifact.Tar, Limits{Bytes: 2 << 40})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a file that does not end, after a cancel: %v", err)
	}
}

// zeros is an endless reader. The first read cancels the context.
type zeros struct{ cancel func() }

func (z zeros) Read(p []byte) (int, error) { z.cancel(); clear(p); return len(p), nil }
