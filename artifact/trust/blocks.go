package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Blocks holds the digests of an artifact's blocks, so that each block can be verified when it arrives, in any order,
// and again after a restart. The list is signed beside the artifact:
//
//	"corpusB1"   8 bytes
//	block size   uint32, big endian; the last block may be shorter
//	digests      32 bytes each, SHA-256
type Blocks struct {
	release artifact.Release
	size    int64
	sums    []byte
}

const (
	blocksMagic = "corpusB1"

	// smallestBlock is the smallest size of a block. A killed download loses at most one block per connection, and each
	// connection needs the memory of one. The list is 0.012 % of the artifact.
	smallestBlock = 256 << 10
	// mostBlocks limits the list of a huge artifact to 1 MiB; its blocks are larger.
	mostBlocks = 32 << 10
	// largestBlock is the largest size of a block, which a host needs in memory per connection: 16 MiB in all, for
	// artifacts of 128 GiB and more.
	largestBlock = 4 << 20
)

// blockSize returns the size of the blocks of an artifact of this length.
func blockSize(length int64) int64 {
	size := int64(smallestBlock)
	for size < largestBlock && blockCount(length, size) > mostBlocks {
		size *= 2
	}
	return size
}

// blockCount returns the number of blocks of a size in an artifact. It avoids length+size, which may overflow.
func blockCount(length, size int64) int64 {
	if length%size > 0 {
		return length/size + 1
	}
	return length / size
}

// MakeBlocks returns the signed list of an artifact's blocks for its publisher. It returns nil for an artifact that
// fits into one block, which needs no list.
func MakeBlocks(r io.Reader, length int64) ([]byte, error) {
	size := blockSize(length)
	if length <= size {
		return nil, nil
	}
	list := binary.BigEndian.AppendUint32([]byte(blocksMagic), uint32(size))
	buf := make([]byte, size)
	for done := int64(0); done < length; {
		n, err := io.ReadFull(r, buf[:min(size, length-done)])
		if err != nil {
			return nil, fmt.Errorf("reading the artifact: %w", err)
		}
		sum := sha256.Sum256(buf[:n])
		list = append(list, sum[:]...)
		done += int64(n)
	}
	return list, nil
}

// ParseBlocks parses a signed list.
func ParseBlocks(s *Signed) (*Blocks, error) {
	b := &Blocks{release: s.release}
	rest, ok := bytes.CutPrefix(s.data, []byte(blocksMagic))
	if !ok || len(rest) < 4 || s.kind != KindBlocks {
		return nil, s.Malformed(errors.New("it is not a list of blocks"))
	}
	b.size, b.sums = int64(binary.BigEndian.Uint32(rest)), rest[4:]
	if b.size <= 0 || b.size > largestBlock || s.release.Length < 0 {
		return nil, s.Malformed(fmt.Errorf("blocks of %d bytes for %d", b.size, s.release.Length))
	}
	if want := blockCount(s.release.Length, b.size); int64(b.count()) != want || len(b.sums)%sha256.Size != 0 {
		return nil, s.Malformed(fmt.Errorf("%d bytes of digests, where %d blocks were expected", len(b.sums), want))
	}
	return b, nil
}

// count returns the number of blocks.
func (b *Blocks) count() int { return len(b.sums) / sha256.Size }

// span returns the position of a block in the artifact.
func (b *Blocks) span(i int) (from, length int64) {
	from = int64(i) * b.size
	return from, min(b.size, b.release.Length-from)
}

// holds reports whether data is the content of block i.
func (b *Blocks) holds(i int, data []byte) bool {
	sum := sha256.Sum256(data)
	return bytes.Equal(sum[:], b.sums[i*sha256.Size:][:sha256.Size])
}
