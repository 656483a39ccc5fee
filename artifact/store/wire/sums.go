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

// Sums are checksums of a part of an object, for comparing it with the server's copy and for signing a request.
type Sums struct {
	// CRC32 in the notation of S3: base64 of the checksum; for an object in parts, the checksum of the parts'
	// checksums, and their number
	CRC32  string
	MD5    []byte
	SHA256 string // hexadecimal; empty for an object in parts
}

func sumsOf(data []byte) Sums {
	crc, sum, sha := crc32.ChecksumIEEE(data), md5.Sum(data), sha256.Sum256(data)
	return Sums{CRC32: crcText(crc), MD5: sum[:], SHA256: hex.EncodeToString(sha[:])}
}

func crcText(crc uint32) string {
	return base64.StdEncoding.EncodeToString([]byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})
}

// together returns the sums of an object that was written in parts.
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

// same compares the server's description of an object with the checksums of the uploaded data. sure is false if the
// server sent no checksum to compare.
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
	// The ETag of an object is its MD5 sum if the server does not encrypt. So equality proves that the content is the
	// same, but inequality proves nothing.
	match := number == ours && etag == hex.EncodeToString(s.MD5)
	return match, match
}

// memory is a part of an object while it is sent. It can be read again from the start, which clients need for signing,
// and reports progress. The bytes that were read last may still be in buffers of the system; even on a slow line,
// sending them takes no longer than the bytes before.
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
	// Small pieces show the progress on a slow line.
	return m.Reader.Read(p[:min(len(p), 32<<10)])
}

// WriteTo hides the WriteTo method of the reader, which would write everything at once.
func (m *memory) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{m}) }
