package file

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// content is the content that a file should have: bytes, or a large source that is opened again for each
// reading. The zero value means that the content of a file stays as it is.
type content struct {
	given  bool
	data   []byte
	source *origin     // nil if data is the whole content
	mode   fs.FileMode // permission bits of the source; 0 if it has none
	copied bool        // the content is that of a source, unchanged or rendered
	there  bool        // the file has this content already, so the source was not read
}

// text returns content that is held in memory.
func text(data []byte) content { return content{given: true, data: data} }

// reader opens the content for writing.
func (c content) reader(ctx context.Context, f *family) (io.ReadCloser, error) {
	if c.source == nil {
		return io.NopCloser(bytes.NewReader(c.data)), nil
	}
	return f.open(ctx, *c.source)
}

// load reads a source up to the size limit of a difference. For a larger source, it returns the start and the origin.
func (f *family) load(ctx context.Context, o origin) (content, error) {
	source, err := f.open(ctx, o)
	if err != nil {
		return content{}, err
	}
	defer source.Close()
	c := content{given: true, mode: source.Mode, copied: true}
	c.data, err = io.ReadAll(io.LimitReader(source, maxDiffBytes+1))
	if err != nil {
		return c, fmt.Errorf("reading the source %s: %w", redact.URLs(o.url), err)
	}
	if len(c.data) > maxDiffBytes {
		c.data, c.source = c.data[:maxDiffBytes], &o
	}
	return c, nil
}

// whole returns the whole content of a source and its mode. It returns an error for a template from a source that an
// unprivileged user can change.
func (f *family) whole(ctx context.Context, o origin, t templated) ([]byte, fs.FileMode, error) {
	if t.Template != "" {
		if err := f.Sources.CheckTrusted(o.url, o.env); err != nil {
			return nil, 0, err
		}
	}
	source, err := f.open(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	defer source.Close()
	data, err := host.ReadAll(source, redact.URLs(o.url))
	if err != nil {
		return nil, 0, fmt.Errorf("reading the source %s: %w", redact.URLs(o.url), err)
	}
	return data, source.Mode, nil
}

// compare returns a description of how the content differs from that of a file, or "" if they are equal.
func (f *family) compare(ctx context.Context, h *host.Host, file string, info host.Info, c content,
	show bool, by readers) (string, error) {
	if !c.given || c.there {
		return "", nil
	}
	if c.source == nil && info.Size <= maxDiffBytes {
		old, err := h.Files.ReadFile(file)
		return f.difference(old, c.data, show, by), err
	}
	same, err := f.same(ctx, h, file, info, c)
	if err != nil || same {
		return "", err
	}
	if !show {
		return hiddenDiff, nil
	}
	head, err := start(h, file)
	if text := binaryChange(head, c.data); text != "" || err != nil {
		return text, err
	}
	return fmt.Sprintf("Replace %d bytes: too many to compare", info.Size), nil
}

// same reports whether a file has content that is too large for a line difference.
func (f *family) same(ctx context.Context, h *host.Host, file string, info host.Info, c content) (bool, error) {
	if c.source == nil && info.Size != int64(len(c.data)) || c.source != nil && info.Size <= maxDiffBytes {
		return false, nil
	}
	old, err := h.Files.Open(file)
	if err != nil {
		return false, err
	}
	defer old.Close()
	shall, err := c.reader(ctx, f)
	if err != nil {
		return false, err
	}
	defer shall.Close()
	return host.Same(ctx, old, shall)
}

// start returns the first 512 bytes of a file.
func start(h *host.Host, file string) ([]byte, error) {
	r, err := h.Files.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, 512))
}

// sumOfFile returns the hash of a file. It stops when the context ends, and at the bound of [host.Seen] for holes.
func sumOfFile(ctx context.Context, h *host.Host, file string, a algorithm) (sum, error) {
	r, err := h.Files.Open(file)
	if err != nil {
		return sum{}, err
	}
	defer r.Close()
	return sum{algorithm: a}.of(host.Bounded(ctx, r))
}

// hasSum reports whether a file can be read and has the hash want.
func hasSum(ctx context.Context, h *host.Host, file string, want sum) bool {
	is, err := sumOfFile(ctx, h, file, want.algorithm)
	return err == nil && is.hex == want.hex
}
