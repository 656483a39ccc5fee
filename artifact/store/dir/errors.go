package dir

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// badSource is an error of the source of a Put, not of the store.
type badSource struct{ error }

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// failed converts an error of the filesystem into one of a store.
func (o operation) failed(err error) error {
	if err == nil {
		return nil
	}
	e := &store.Error{Op: o.op, Object: o.object(), Kind: store.ErrUnreachable, Cause: err}
	var bad badSource
	switch {
	case errors.As(err, &bad):
		return &store.Error{Op: o.op, Object: o.object(), Kind: bad.error}
	case errors.Is(err, store.ErrPrecondition), errors.Is(err, store.ErrUnchanged):
		e.Kind, e.Cause = err, nil
	case o.op != store.OpPut && (absent(err) || errors.Is(err, syscall.ENAMETOOLONG)):
		e.Kind, e.Cause = store.ErrNotFound, nil
	case errors.Is(err, fs.ErrPermission):
		e.Kind = store.ErrForbidden
		return diag.Rights.Hint(e, "%s", o.permission())
	case errors.Is(err, syscall.EROFS):
		e.Kind = store.ErrReadOnly
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return diag.Disk.Hint(e, "the disk of %s is full: make room there (df -h, df -i), and run the command again", o.dir)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return diag.StoreURL.Hint(e, "a name between two slashes has at most 255 bytes in a filesystem")
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return diag.StoreURL.Hint(e, "in a directory no key can be the directory of another")
	case errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.EIO), errors.Is(err, io.ErrUnexpectedEOF):
		e.Again = true // a share may become available again
	}
	return e
}

// permission returns the permission that this process needs.
func (o operation) permission() string {
	switch o.op {
	case store.OpGet:
		return "this user must be allowed to read the file and to search the directories above it"
	case store.OpList:
		return "this user must be allowed to read every directory below " + o.dir
	}
	return "this user must be allowed to write in " + filepath.Dir(o.object())
}
