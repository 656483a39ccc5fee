package dir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// displace renames what has the name of an object and is no file, such as a directory or a link, so that the object can
// be written. In a bucket, an object and the objects below its key exist side by side. What was in a directory is not
// deleted, but List no longer shows it.
func displace(root *os.Root, key string) error {
	stat, err := root.Lstat(key)
	if absent(err) || err == nil && stat.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	return root.Rename(key, path.Join(path.Dir(key), ours+"displaced-"+rand.Text()))
}

// clear removes what has the name of a directory above an object and is none. A directory that another process creates
// there meanwhile stays, since only an empty one can be removed.
func clear(root *os.Root, dir string) {
	if dir == "." {
		return
	}
	clear(root, path.Dir(dir))
	if _, err := root.Lstat(dir); err != nil {
		return
	}
	if stat, err := root.Stat(dir); err != nil || !stat.IsDir() {
		_ = root.Remove(dir) // makeDirs reports what remains
	}
}

// leadsNowhere reports whether an error is that of a link that leads out of the store or to itself.
func leadsNowhere(err error) bool {
	var number syscall.Errno
	var at *fs.PathError
	return errors.As(err, &at) && (!errors.As(err, &number) || number == syscall.ELOOP)
}
