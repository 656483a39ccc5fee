package packaging_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging"
)

// largeTree returns a tree of 30,000 files and 314 MB, of which a third is hard to compress, as in trees of services
// with their libraries.
func largeTree(b *testing.B) (dir string, size int64) {
	b.Helper()
	const files = 30_000
	words := make([]string, 4000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range words {
		words[i] = fmt.Sprintf("%x", random.Uint32N(1<<(4+i%24)))
	}
	dir = b.TempDir()
	for i := range files {
		name := filepath.Join(dir, fmt.Sprintf("d%03d/s%d/file-%05d", i/100, i%7, i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		length := 1000 + random.IntN(2*(314_000_000/files-1000))
		data := make([]byte, 0, length+20)
		for len(data) < length {
			if i%3 == 0 {
				data = fmt.Appendf(data, "%016x", random.Uint64())
			} else {
				data = append(append(data, words[random.IntN(len(words))]...), ' ')
			}
		}
		if err := os.WriteFile(name, data[:length], 0o644); err != nil {
			b.Fatal(err)
		}
		size += int64(length)
	}
	return dir, size
}

// BenchmarkPack packs a tree as `corpus build` does and, in the same run, as `tar --sort=name | zstd` at the same level
// does. It reports the ratio of their durations; the target is at most 1.2. The first round, which fills the disk
// cache, does not count.
func BenchmarkPack(b *testing.B) {
	for _, program := range []string{"tar", "zstd"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Skipf("%s is not installed", program)
		}
	}
	tree, size := largeTree(b)
	peer := func() time.Duration {
		began := time.Now()
		cmd := exec.Command("sh", "-c", `tar --sort=name -C "$0" -c . | zstd -q -3 >/dev/null`, tree)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return time.Since(began)
	}
	var theirs, ours time.Duration
	var peak uint64
	peer()
	b.SetBytes(size)
	for b.Loop() {
		theirs += peer()
		began := time.Now()
		if _, err := packaging.Build(b.Context(), tree, io.Discard, packaging.Options{}); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(began)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapSys)
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "times-tar|zstd")
	b.ReportMetric(ours.Seconds()/float64(b.N), "pack-s")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "tar|zstd-s")
	b.ReportMetric(float64(peak)/(1<<20), "heap-MiB")
}
