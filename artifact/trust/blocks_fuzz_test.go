package trust

import (
	"bytes"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// FuzzBlocks parses a list of blocks for an artifact of any length. A valid list covers each byte of the artifact once,
// with blocks that fit into a host's memory.
func FuzzBlocks(f *testing.F) {
	content := bytes.Repeat([]byte("x"), smallestBlock+1)
	list, err := MakeBlocks(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(list, int64(len(content)))
	f.Add([]byte(blocksMagic+"\x00\x00\x00\x01"), int64(0))
	f.Add([]byte(blocksMagic+"\xff\xff\xff\xff"), int64(-1))
	f.Add([]byte(blocksMagic+"\x00\x40\x00\x00"), int64(1)<<62)
	f.Fuzz(func(t *testing.T, data []byte, length int64) {
		b, err := ParseBlocks(&Signed{release: artifact.Release{Project: "a", Version: "1", Length: length},
			kind: KindBlocks, data: data})
		if err != nil {
			return
		}
		end := int64(0)
		for i := range b.count() {
			from, n := b.span(i)
			if from != end || n <= 0 || n > largestBlock {
				t.Fatalf("block %d has %d bytes from %d, after the end at %d", i, n, from, end)
			}
			end = from + n
			b.holds(i, data)
		}
		if end != length {
			t.Errorf("the blocks end at %d of %d", end, length)
		}
	})
}
