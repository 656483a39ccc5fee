package unpack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
)

// stalling is a store whose artifacts never arrive completely: after some bytes the download stalls until it is closed.
type stalling struct {
	store.Store
	after int64
}

func (s stalling) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return s.GetRange(ctx, key, store.Range{From: from})
}

func (s stalling) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	body, info, err := store.GetRange(ctx, s.Store, key, part)
	if err != nil || info.Size < s.after {
		return body, info, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, s.after), stuck(ctx.Done())), body}, info, nil
}

// stuck is a reader that blocks on a channel.
type stuck <-chan struct{}

func (s stuck) Read([]byte) (int, error) {
	<-s
	return 0, errors.New("it ended")
}

// arriving returns a release of a store that is being downloaded.
func arriving(t *testing.T, after int64) *trust.Verified {
	t.Helper()
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1", "testing",
		artifacttest.Files{"a": strings.Repeat("x", 1000), "data": noise(4 << 20)})
	host := repo.Host()
	host.Store = stalling{repo.Store, after}
	client, err := host.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	signed, err := client.FetchSidecar(t.Context(), release, trust.KindBlocks)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := trust.ParseBlocks(signed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Download(context.Background(), blocks, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// noise returns content that does not compress.
func noise(size int) string {
	var b strings.Builder
	for n := uint32(1); b.Len() < size; n = n*1664525 + 1013904223 {
		b.Write([]byte{byte(n >> 24), byte(n >> 16)})
	}
	return b.String()
}

// TestIntoEndsWithItsContext checks that unpacking an artifact that stalls ends at its time limit, or when the run is
// interrupted, although the download itself continues to wait.
func TestIntoEndsWithItsContext(t *testing.T) {
	for _, after := range []int64{100 << 10, 300 << 10} { // within the first block, and beyond it
		for name, c := range map[string]struct {
			limit func() (context.Context, context.CancelFunc)
			want  error
		}{
			"its time": {func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), 200*time.Millisecond)
			}, context.DeadlineExceeded},
			"an interrupt": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(200*time.Millisecond, cancel)
				return ctx, cancel
			}, context.Canceled},
		} {
			t.Run(name, func(t *testing.T) {
				v := arriving(t, after)
				root, err := os.OpenRoot(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer root.Close()
				ctx, cancel := c.limit()
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := unpack.Into(ctx, v, root, unpack.Limits{})
					ended <- err
				}()
				select {
				case err := <-ended:
					if !errors.Is(err, c.want) {
						t.Errorf("%v, want %v", err, c.want)
					}
				case <-time.After(time.Minute):
					t.Error("unpacking still waits for the store")
				}
				_ = v.Close() // the download was interrupted
			})
		}
	}
}

// TestInspectEndsWithItsContext checks the same for a reader that cannot be interrupted.
func TestInspectEndsWithItsContext(t *testing.T) {
	whole := artifacttest.Archive(t, artifacttest.Files{"data": noise(1 << 20)})
	for _, format := range []artifact.Format{artifact.TarZst, artifact.TarGz, artifact.TarXz, artifact.Tar} {
		start := io.Reader(strings.NewReader(""))
		if format == artifact.TarZst {
			start = bytes.NewReader(whole[:len(whole)/2])
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		began := time.Now()
		_, err := unpack.Inspect(ctx, io.MultiReader(start, stuck(nil)), format, unpack.Limits{})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
			t.Errorf("%s: %v after %v", format, err, time.Since(began))
		}
	}
}
