package trust

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Verified is an artifact whose reader returns only bytes that the project's key signed. Only this package makes one
// with content, so a function that accepts a Verified never gets unverified bytes.
type Verified struct {
	release artifact.Release
	file    *os.File
	stream  *download // nil unless the artifact is still arriving
}

// Release returns the release that was verified.
func (v *Verified) Release() artifact.Release { return v.release }

// Reader reads the artifact from the start, and returns io.EOF after the last byte only if the whole artifact is
// verified. An artifact that is still being downloaded has only one reader.
func (v *Verified) Reader() io.Reader {
	if v.stream != nil {
		return v.stream
	}
	return io.NewSectionReader(v.file, 0, v.release.Length)
}

// Whole waits until the whole artifact has arrived and is verified, for formats that have their directory at the
// end.
func (v *Verified) Whole(ctx context.Context) (*io.SectionReader, error) {
	if v.stream != nil {
		if _, err := io.Copy(io.Discard, artifact.Awaited(ctx, v.stream)); err != nil {
			return nil, err
		}
	}
	return io.NewSectionReader(v.file, 0, v.release.Length), nil
}

// Close stops a download in progress and closes the file.
func (v *Verified) Close() error {
	if v.stream != nil {
		v.stream.close()
	}
	return v.file.Close()
}

// Progress is called with the number of bytes that have arrived since the last call. It may be nil.
type Progress func(bytes int)

// Fetch copies an artifact from the store to a file and verifies its length and digest.
// No other user may be able to write to the file. On success the Verified owns it.
func (c *Client) Fetch(ctx context.Context, r artifact.Release, into *os.File, progress Progress) (*Verified, error) {
	body, info, err := c.store.Get(ctx, ObjectKey(r), 0)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", r, err)
	}
	defer body.Close()
	whole, err := pageInstead(ObjectKey(r), body)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", r, err)
	}
	if wrongSize(info, r) {
		return nil, c.AddSigners(r.Project, badLength(r, info.Size))
	}
	// One byte more than signed is enough to notice a longer artifact.
	if err := verify(r, io.TeeReader(io.LimitReader(&counted{whole, progress}, r.Length+1), into)); err != nil {
		return nil, c.AddSigners(r.Project, err)
	}
	return &Verified{release: r, file: into}, nil
}

// Verify checks a file on this host. On success the Verified owns it.
func Verify(r artifact.Release, file *os.File) (*Verified, error) {
	if err := verify(r, io.NewSectionReader(file, 0, r.Length+1)); err != nil {
		return nil, err
	}
	return &Verified{release: r, file: file}, nil
}

func verify(r artifact.Release, from io.Reader) error {
	sum := sha256.New()
	n, err := io.Copy(sum, from)
	switch {
	case err != nil:
		return fmt.Errorf("fetching %s: %w", r, err)
	case n != r.Length:
		return badLength(r, n)
	}
	if got := artifact.NewDigest([32]byte(sum.Sum(nil))); got != r.Digest {
		return &Refused{Check: CheckDigest, Of: r.String(),
			Err: fmt.Errorf("its digest is %s, and %s was signed", got, r.Digest)}
	}
	return nil
}

// wrongSize reports whether the store announces a length other than the signed one; a web server may not announce any.
func wrongSize(info store.Info, r artifact.Release) bool {
	return info.Size >= 0 && info.Size != r.Length
}

func badLength(r artifact.Release, got int64) *Refused {
	return &Refused{Check: CheckLength, Of: r.String(),
		Err: fmt.Errorf("it has %d bytes, and %d were signed", got, r.Length)}
}

type counted struct {
	io.Reader
	progress Progress
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.progress != nil && n > 0 {
		c.progress(n)
	}
	return n, err
}

// Check reads an artifact in the store to its end and verifies it, without keeping it.
func (c *Client) Check(ctx context.Context, r artifact.Release, progress Progress) error {
	body, info, err := c.store.Get(ctx, ObjectKey(r), 0)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", r, err)
	}
	defer body.Close()
	whole, err := pageInstead(ObjectKey(r), body)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", r, err)
	}
	if wrongSize(info, r) {
		return c.AddSigners(r.Project, badLength(r, info.Size))
	}
	return c.AddSigners(r.Project, verify(r, io.LimitReader(&counted{whole, progress}, r.Length+1)))
}
