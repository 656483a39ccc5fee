package wire

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
)

// Sums are what a part of an object is compared by: what the server counts, and what signs a request.
type Sums struct {
	CRC32  string // as S3 writes it: base64 of the checksum; of an object in parts, of the parts', and their number
	MD5    []byte
	SHA256 string // in hexadecimal digits; empty for an object in parts
}

func sumsOf(data []byte) Sums {
	crc, sum, sha := crc32.ChecksumIEEE(data), md5.Sum(data), sha256.Sum256(data)
	return Sums{CRC32: crcText(crc), MD5: sum[:], SHA256: hex.EncodeToString(sha[:])}
}

func crcText(crc uint32) string {
	return base64.StdEncoding.EncodeToString([]byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})
}

// together are the sums of an object that was written in parts.
func together(parts []Part) (Sums, error) {
	var crcs, sums bytes.Buffer
	for _, p := range parts {
		crc, err := base64.StdEncoding.DecodeString(p.sums.CRC32)
		if err != nil {
			return Sums{}, err
		}
		crcs.Write(crc)
		sums.Write(p.sums.MD5)
	}
	sum := md5.Sum(sums.Bytes())
	return Sums{CRC32: fmt.Sprintf("%s-%d", crcText(crc32.ChecksumIEEE(crcs.Bytes())), len(parts)), MD5: sum[:]}, nil
}

// same compares what a server says of an object with what was sent. sure is false where it says nothing
// that can be compared.
func (s Sums) same(said Written) (same, sure bool) {
	etag := strings.Trim(said.ETag, `"`)
	etag, number, _ := strings.Cut(etag, "-")
	ours := ""
	if _, n, ok := strings.Cut(s.CRC32, "-"); ok {
		ours = n
	}
	if said.CRC32 != "" && strings.Contains(said.CRC32, "-") == (ours != "") {
		return said.CRC32 == s.CRC32, true
	}
	// The tag of an object is its MD5 sum where the server does not encrypt: so equality proves, and
	// inequality proves nothing.
	match := number == ours && etag == hex.EncodeToString(s.MD5)
	return match, match
}

// memory is a part of an object on its way: it reads again from the start, as a client needs that signs
// what it sends, and tells that bytes have gone out. What it gave last may wait in buffers of the system:
// on a slow line these take no longer than what went before.
type memory struct {
	*bytes.Reader
	moved func(more time.Duration)
	start time.Time
}

func (m *memory) Read(p []byte) (int, error) {
	if m.start.IsZero() {
		m.start = time.Now()
	}
	m.moved(time.Since(m.start))
	// In small pieces, so that a slow line shows that it moves.
	return m.Reader.Read(p[:min(len(p), 32<<10)])
}

// WriteTo is not the reader's own, which would hand over everything at once.
func (m *memory) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{m}) }
