package dir

import (
	"crypto/rand"
	"os"
	"path"
)

// displace renames a directory that has the name of an object, so that the object can be written. In a bucket, an
// object and the objects below its key exist side by side. What was in the directory is not deleted, but List no longer
// shows it.
func displace(root *os.Root, key string) error {
	stat, err := root.Lstat(key)
	if absent(err) || err == nil && !stat.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	return root.Rename(key, path.Join(path.Dir(key), ours+"displaced-"+rand.Text()))
}
