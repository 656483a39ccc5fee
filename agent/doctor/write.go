package doctor

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// impossible is an ETag that no object has: a write on the condition that an object has it changes nothing.
const impossible = "corpus-doctor-writes-nothing"

// MayWrite reports whether the store lets this machine write below a key prefix. It writes nothing: it requests to
// replace an object under a condition that is never met, which a server evaluates after it has checked the rights. For
// a directory it checks the permissions. The error is store.ErrForbidden or store.ErrReadOnly if writing is not
// permitted.
func MayWrite(ctx context.Context, s Store, prefix string) error {
	if u, err := url.Parse(s.URL); err == nil && u.Scheme == "file" {
		return writableDirectory(filepath.Join(u.Path, prefix), u.Path)
	}
	_, err := s.Put(ctx, prefix+"doctor", bytes.NewReader(nil), 0, store.Condition{IfMatch: impossible})
	if errors.Is(err, store.ErrPrecondition) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// writableDirectory checks the closest existing directory of a path, up to root.
func writableDirectory(dir, root string) error {
	for {
		err := unix.Access(dir, unix.W_OK)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.ENOENT) && dir != filepath.Clean(root):
			dir = filepath.Dir(dir)
			continue
		case errors.Is(err, unix.EROFS):
			return &store.Error{Op: store.OpPut, Object: dir, Kind: store.ErrReadOnly, Cause: os.NewSyscallError("access", err)}
		}
		return &store.Error{Op: store.OpPut, Object: dir, Kind: store.ErrForbidden, Cause: os.NewSyscallError("access", err)}
	}
}

// AskPublish adds whether the store may be written below deploy/, which of those who sign only publishers need.
func (f *Findings) AskPublish(ctx context.Context, s Store) {
	const prefix = "deploy/"
	err := MayWrite(ctx, s, prefix)
	if errors.Is(err, store.ErrForbidden) {
		f.OK("write", "%s cannot be written, which only publishers need", prefix)
		return
	}
	f.addWrite(err, prefix, "publisher", false)
}

// AskWrite adds whether the store may be written below prefixes. who is the role that needs that, as named in
// docs/buckets.md. proven reports that earlier writes have succeeded. A refusal is then only a warning: on AWS a
// conditional write also needs the right to read the object, so a role that may only write is refused this check and
// not the actual writes.
func (f *Findings) AskWrite(ctx context.Context, s Store, who string, proven bool, prefixes ...string) {
	for _, prefix := range prefixes {
		f.addWrite(MayWrite(ctx, s, prefix), prefix, who, proven)
	}
}

// addWrite adds the result of MayWrite for a prefix; see AskWrite for who and proven.
func (f *Findings) addWrite(err error, prefix, who string, proven bool) {
	switch {
	case err == nil:
		f.OK("write", "%s can be written", prefix)
	case errors.Is(err, store.ErrReadOnly):
		f.Error("write", diag.Credentials, err, "use a store that can be written: s3://, minio:// or a directory")
	case errors.Is(err, store.ErrForbidden) && proven:
		f.Warn("write", diag.Credentials,
			"check that new reports arrive; if not, give the rights of "+who+" in docs/buckets.md",
			"the right to write %s cannot be seen; earlier writes succeeded", prefix)
	case errors.Is(err, store.ErrForbidden):
		f.Error("write", diag.Credentials, err, "give this role the rights of "+who+" in docs/buckets.md")
	default:
		f.Error("write", diag.Credentials, err, "see the message; docs/buckets.md lists the rights of "+who)
	}
}
