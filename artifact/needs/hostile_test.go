package needs_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
)

// header returns a 64-bit program with one program header.
func header(kind uint32, offset, size uint64) []byte {
	h := make([]byte, 120)
	copy(h, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(h[16:], 2)  // a program
	binary.LittleEndian.PutUint16(h[18:], 62) // of amd64
	binary.LittleEndian.PutUint64(h[32:], 64) // where its headers are
	binary.LittleEndian.PutUint16(h[54:], 56)
	binary.LittleEndian.PutUint16(h[56:], 1)
	binary.LittleEndian.PutUint32(h[64:], kind)
	binary.LittleEndian.PutUint64(h[72:], offset)
	binary.LittleEndian.PutUint64(h[96:], size)
	return h
}

func files(data []byte) fstest.MapFS {
	return fstest.MapFS{"bin/x": {Data: data}, "lib/x/libc.so.6": {Data: data}}
}

// TestSmallProgramsWithHugeHeaders reads programs of 120 bytes whose headers declare huge sizes.
func TestSmallProgramsWithHugeHeaders(t *testing.T) {
	for name, data := range map[string][]byte{
		"a loader of 2^63 bytes":      header(3, 0, 1<<63),
		"a loader of 2^40 bytes":      header(3, 0, 1<<40),
		"dynamic of 2^40 bytes":       header(2, 0, 1<<40),
		"an offset of 2^64-1":         header(2, 1<<64-1, 16),
		"a loader past the end":       header(3, 100, 4096),
		"only the first bytes":        header(3, 0, 1)[:20],
		"a loader that is not a path": header(3, 0, 4),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := needs.Of(files(data))
		missing, unread := needs.Needs{Glibc: "2.1"}.Missing(needs.Host{Root: files(data)})
		runtime.ReadMemStats(&after)
		if err != nil || unread != nil || len(n.Programs) > 0 || n.Glibc != "" || len(missing) != 1 {
			t.Errorf("%s: %+v, %v, %v, %q", name, n, err, unread, missing)
		}
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 64<<20 {
			t.Errorf("%s: %d bytes were allocated", name, cost)
		}
	}
}

// FuzzPrograms reads hostile programs.
func FuzzPrograms(f *testing.F) {
	f.Add(header(3, 0, 1<<63))
	f.Add(header(2, 64, 56))
	if data, err := os.ReadFile("/bin/sh"); err == nil && len(data) < 256<<10 {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := needs.Of(files(data))
		if err != nil && !strings.Contains(err.Error(), "others of the release") {
			t.Error(err)
		}
		for _, p := range n.Programs {
			if !strings.HasPrefix(p, "/") || bytes.ContainsRune([]byte(p), 0) {
				t.Errorf("a loader %q", p)
			}
		}
		needs.Needs{Glibc: "2.1"}.Missing(needs.Host{Root: files(data)})
	})
}
