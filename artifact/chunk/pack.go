package chunk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// storedExtra is the maximum number of bytes that compression may add to a chunk.
const storedExtra = 1 << 10

// Place is the position of a chunk of an earlier version.
type Place struct {
	Pack   artifact.Digest
	Offset int64
	Stored int
}

// Known collects the chunks of earlier indexes of the same project, which Pack uses again.
type Known map[Sum]Place

// Add adds the chunks of an index.
func (k Known) Add(x *Index) {
	for _, c := range x.Chunks {
		k[c.Sum] = Place{Pack: x.Packs[c.Pack], Offset: c.Offset, Stored: c.Stored}
	}
}

// Pack writes the chunks of a stream that are not in known to a pack, compressed, and returns the stream's index. The
// pack is empty if there are no new chunks.
func Pack(ctx context.Context, s *Stream, known Known, to io.Writer) (*Index, artifact.Digest, int64, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, "", 0, err
	}
	defer encoder.Close()
	p := packer{known: known, out: to, sum: sha256.New(), encoder: encoder, own: map[Sum]Place{},
		packs: map[artifact.Digest]int{}}
	x := &Index{Size: sizeFor(s.Length()), List: int64(len(s.list))}
	cutter := NewCutter(artifact.Stoppable(ctx, s.Reader()), x.Size)
	if err := p.addAll(cutter); err != nil {
		return nil, "", 0, fmt.Errorf("packing chunks: %w", err)
	}
	return p.finish(x), artifact.NewDigest([32]byte(p.sum.Sum(nil))), p.size, nil
}

// addAll adds the chunks of a stream up to its end.
func (p *packer) addAll(c *Cutter) error {
	for {
		data, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = p.add(data)
		}
		if err != nil {
			return err
		}
	}
}

type packer struct {
	known   Known
	out     io.Writer
	sum     hash.Hash
	size    int64
	encoder *zstd.Encoder
	buf     []byte
	own     Known // chunks of this pack, whose digest is not known yet
	packs   map[artifact.Digest]int
	order   []artifact.Digest
	chunks  []Chunk
}

func (p *packer) add(data []byte) error {
	sum := Sum(sha256.Sum256(data))
	place, ok := p.known[sum]
	if !ok {
		place, ok = p.own[sum]
	}
	if !ok {
		p.buf = p.encoder.EncodeAll(data, p.buf[:0])
		place = Place{Offset: p.size, Stored: len(p.buf)}
		if _, err := p.out.Write(p.buf); err != nil {
			return err
		}
		p.sum.Write(p.buf)
		p.size += int64(len(p.buf))
		p.own[sum] = place
	}
	p.chunks = append(p.chunks, Chunk{Sum: sum, Length: len(data), Pack: p.pack(place.Pack),
		Offset: place.Offset, Stored: place.Stored})
	return nil
}

// pack numbers the packs in use; the digest of the new one is not known yet.
func (p *packer) pack(digest artifact.Digest) int {
	n, ok := p.packs[digest]
	if !ok {
		n = len(p.order)
		p.packs[digest] = n
		p.order = append(p.order, digest)
	}
	return n
}

func (p *packer) finish(x *Index) *Index {
	x.Chunks, x.Packs = p.chunks, p.order
	for i, digest := range x.Packs {
		if digest == "" {
			x.Packs[i] = artifact.NewDigest([32]byte(p.sum.Sum(nil)))
		}
	}
	return x
}
