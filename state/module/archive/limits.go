package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// limits bound what an archive may consume. Each is an argument of the state, where 0 means the default.
type limits struct {
	entries int // max_entries: 500,000
	// max_bytes: total size of the files on disk, and size of a fetched archive; 64 GiB
	bytes int64
	depth int           // max_depth: path components of a name; 64
	ratio int64         // max_ratio: expansion of the archive, counted above ratioFloor; 1,000
	time  time.Duration // max_seconds: for listing, and again for extracting; an hour
}

// Fixed limits, in bytes.
const (
	maxName    = 255       // of a path component, the limit of Linux file systems
	maxPath    = 4000      // of a path
	maxLink    = 4000      // of the target of a link
	maxNames   = 128 << 20 // of all names and targets together, which are kept in memory
	ratioFloor = 64 << 20  // up to which max_ratio does not apply
)

func (x *extracted) limits() limits {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	return limits{
		entries: or(x.MaxEntries, 500_000), bytes: int64(or(x.MaxBytes, 64<<30)), depth: or(x.MaxDepth, 64),
		ratio: int64(or(x.MaxRatio, 1000)), time: time.Duration(or(x.MaxSeconds, 3600)) * time.Second,
	}
}

// checkLimits reports invalid limits.
func (x *extracted) checkLimits(bad func(hint, format string, args ...any)) {
	for _, l := range []struct {
		name string
		n    int
	}{{"max_entries", x.MaxEntries}, {"max_bytes", x.MaxBytes}, {"max_depth", x.MaxDepth}, {"max_ratio", x.MaxRatio},
		{"max_seconds", x.MaxSeconds}} {
		if l.n < 0 {
			bad("leave it out for the default", "%s is %d, and a number above 0 was expected", l.name, l.n)
		}
	}
}

// within returns a context that ends after max_seconds.
func (l limits) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.time, beyond("max_seconds", "it takes longer than %s", l.time))
}

func (l limits) count(entries int) error {
	if entries > l.entries {
		return beyond("max_entries", "it has more than %d entries", l.entries)
	}
	return nil
}

// limitError is the error for an archive beyond a limit.
type limitError struct{ text, argument string }

func (e *limitError) Error() string { return "the archive is refused: " + e.text }

// Hint names the argument that raises the limit.
func (e *limitError) Hint() string {
	return diag.Archive.Coded(fmt.Sprintf("if the archive is good, set %s to a larger number", e.argument))
}

func beyond(argument, format string, args ...any) error {
	return &limitError{fmt.Sprintf(format, args...), argument}
}

// ended reports whether an error does not concern the format of the archive: a limit or an interrupted run.
func ended(err error) bool {
	var l *limitError
	return errors.As(err, &l) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// growth counts the bytes that are read from an archive after decompression.
type growth struct {
	ctx    context.Context
	limits limits
	packed int64 // size of the archive in bytes
	read   int64 // bytes after decompression
}

// of returns a reader that counts what is read from r.
func (g *growth) of(r io.Reader) io.Reader { return &growing{g, r} }

type growing struct {
	*growth
	r io.Reader
}

func (g *growing) Read(p []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, context.Cause(g.ctx)
	}
	n, err := g.r.Read(p)
	g.read += int64(n)
	if g.read > ratioFloor && g.read/max(g.packed, 1) >= g.limits.ratio {
		return 0, beyond("max_ratio", "it grows more than %d-fold", g.limits.ratio)
	}
	return n, err
}

// atMost is a reader that fails if more than left bytes are read.
type atMost struct {
	io.Reader
	left int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, beyond("max_bytes", "it is larger than allowed")
	}
	return n, err
}

// spared is the free space that must remain on the file system, in bytes.
const spared = 16 << 20

// spaceLimit counts the written bytes against max_bytes and the free space of the file system.
type spaceLimit struct {
	files   host.Beneath
	limits  limits
	written int64
	check   int64 // the number of written bytes at which to query the file system again
}

// fits returns an error if the file system does not have space for a number of bytes and entries.
func (r *spaceLimit) fits(bytes int64, entries int) error {
	free, files, err := r.files.Free()
	if err != nil {
		return err
	}
	if bytes > free-spared {
		return full(fmt.Errorf("it holds %d bytes, and the filesystem has %d left", bytes, max(free, 0)))
	}
	if int64(entries) > files {
		return full(fmt.Errorf("it has %s, and the filesystem can take %d more files", diag.Count(entries, "entry"), files))
	}
	return nil
}

func full(err error) error {
	return diag.Disk.Hint(err, "make room on that filesystem, or extract to another one")
}

// of returns a reader that counts what is read from content.
func (r *spaceLimit) of(content io.Reader) io.Reader { return &spaceReader{r, content} }

type spaceReader struct {
	*spaceLimit
	content io.Reader
}

func (r *spaceReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	r.written += int64(n)
	if r.written > r.limits.bytes {
		return 0, beyond("max_bytes", "its files hold more than %d bytes", r.limits.bytes)
	}
	if r.written >= r.check {
		r.check = r.written + ratioFloor
		if err := r.fits(0, 0); err != nil {
			return 0, err
		}
	}
	return n, err
}
