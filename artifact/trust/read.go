package trust

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ReadMetadata fetches a metadata file without verifying it.
func ReadMetadata(ctx context.Context, s store.Store, key string) ([]byte, error) {
	return read(ctx, s, key, maxMetadata)
}

func newSet(root []byte) (set *tuf.Set, err error) {
	err = guardFile(root, func() error { set, err = tuf.NewSet(root); return err })
	return set, err
}

// guardFile is like Guard for a parser of a file. It first refuses files that two parsers may read differently.
func guardFile(data []byte, check func() error) error {
	if err := artifact.CheckJSON(data); err != nil {
		return fmt.Errorf("malformed metadata: %w", err)
	}
	return Guard(check)
}

// Guard turns a panic of a verifier into an error. The input may be hostile, and some malformed keys make the standard
// library's verifiers panic.
func Guard(check func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed metadata: %v", p)
		}
	}()
	return check()
}

// limit returns the maximum number of bytes to read of a metadata file.
func (c *Client) limit(meta *tuf.MetaFiles) int64 {
	most := int64(maxMetadata)
	if c.renew {
		most = maxRepair
	}
	if meta.Length > 0 && meta.Length < most {
		return meta.Length
	}
	return most
}

// CheckSize returns an error if a metadata file is larger than readers accept, so that a publisher does not sign it.
// role is the name of a role, or of a page.
func CheckSize(role string, size int) error {
	most := maxMetadata
	if role == tuf.RoleTimestamp {
		most = maxTimestamp
	}
	if size <= most {
		return nil
	}
	return diag.Metadata.Hint(fmt.Errorf("the metadata of %s would have %d bytes, and readers accept at most %d", role,
		size, most),
		"nothing was written; have fewer channels, shorter reasons of withdrawals, or proofs that name fewer hosts")
}

// read fetches a whole object of at most limit bytes; a longer one is refused.
func read(ctx context.Context, s store.Store, key string, limit int64) ([]byte, error) {
	o, err := readObject(ctx, s, key, limit, "")
	if err != nil {
		return nil, err
	}
	return o.data, nil
}

// object is an object of a store with its description.
type object struct {
	data []byte
	info store.Info
}

// readObject is like read for an object that the caller may have already. The error is store.ErrUnchanged if the
// object's ETag is unless.
func readObject(ctx context.Context, s store.Store, key string, limit int64, unless string) (*object, error) {
	body, info, err := store.GetRange(ctx, s, key, store.Range{Unless: unless})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil && ctx.Err() != nil {
		return nil, store.Stopped(ctx, store.OpGet, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if err := PageInstead(key, data); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &Refused{Check: CheckLength, Of: key, Err: fmt.Errorf("it is longer than the %d bytes allowed", limit)}
	}
	return &object{data, info}, nil
}

// PageInstead returns an error if the start of a response is a web page, which no object is. The error is that of an
// unreachable store: something else responded in its place, such as a captive portal, and the store is unchanged.
func PageInstead(key string, start []byte) error {
	if !webPage(start) {
		return nil
	}
	return diag.Store.Hint(&store.Error{Op: store.OpGet, Object: key, Kind: store.ErrUnreachable,
		Cause: errors.New("a web page came in place of the file")},
		"something between here and the store answers in its place, such as a captive portal or a proxy: open the store's "+
			"URL in a browser, or with curl")
}

// pageInstead is like PageInstead for an unread body. The returned reader reads all of the body.
func pageInstead(key string, body io.Reader) (io.Reader, error) {
	whole := bufio.NewReaderSize(body, pageStart)
	start, _ := whole.Peek(pageStart) // reading from whole returns the error again
	return whole, PageInstead(key, start)
}

// pageStart is the number of bytes of a response that show whether it is a web page.
const pageStart = 512

// webPage reports whether a document is HTML, which no object in a store is.
func webPage(data []byte) bool {
	start := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), pageStart)]))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// eachStore reads a metadata file from one store after the other, until accept returns nil.
func (c *Client) eachStore(ctx context.Context, key string, limit int64, accept func([]byte) error) error {
	var all error
	for i, s := range store.Each(c.store) {
		data, err := read(ctx, s, key, limit)
		if err == nil {
			err = accept(data)
		}
		if err == nil {
			store.Prefer(c.store, i)
			return nil
		}
		if all = then(all, err); ctx.Err() != nil {
			break
		}
	}
	return HintRebuild(all)
}

// HintRebuild adds a hint to an error about a metadata file that the store has lost, or that was damaged there.
func HintRebuild(err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		if refused.Check == CheckForm || refused.Check == CheckDigest || refused.Check == CheckLength {
			return diag.StoreLost.Hint(err,
				"make sure that the URL is that of the store, and find out who changed it; "+onCopy+"; in the publisher's "+
					"store run `corpus refresh --rebuild` with the keys of snapshot and timestamp, best with the --keys "+
					"directory that published last: it restores what was kept, and says what to do about the rest")
		}
		return err
	}
	if errors.Is(err, store.ErrNotFound) && diag.HintOf(err) == "" {
		return diag.StoreLost.Hint(err,
			"the store has lost a file: "+onCopy+"; in the publisher's store run `corpus refresh --rebuild` with the keys "+
				"of snapshot and timestamp, best with the --keys directory that published last: it restores what was kept and "+
				"says what to do about the rest")
	}
	return err
}

// then joins the errors of several stores in one line.
func then(all, err error) error {
	if all == nil {
		return err
	}
	return fmt.Errorf("%w; then %w", all, err)
}

// SetUp reports whether a store has a first root, which shows that it was set up.
func SetUp(ctx context.Context, s store.Store) bool {
	body, _, err := s.Get(ctx, RoleKey(tuf.RoleRoot, 1), 0)
	if err != nil {
		return false
	}
	_ = body.Close() // only its existence matters
	return true
}

// LostTimestamp returns the error for a store that was set up and has no timestamp.
func LostTimestamp(err error) error {
	return diag.StoreLost.Hint(fmt.Errorf("the store has lost its timestamp: %w", err),
		onCopy+"; in the publisher's store run `corpus refresh --rebuild` with the keys of snapshot and timestamp: it "+
			"makes the file again and keeps every project")
}

// Decode parses a signed file without verifying its signatures. All such files are parsed with it: it refuses files
// that two parsers may read differently (see artifact.CheckJSON), and those that make a verifier panic.
func Decode[T tuf.Roles](data []byte) (role *tuf.Metadata[T], err error) {
	err = guardFile(data, func() error {
		role, err = tuf.Decode[T](data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return role, nil
}

// DecodeInto is like Decode for files, and parts of files, without a type in artifact/tuf: pages of versions,
// provenance, and files that are examined before they are verified.
func DecodeInto(data []byte, into any) error {
	return guardFile(data, func() error { return json.Unmarshal(data, into) })
}
