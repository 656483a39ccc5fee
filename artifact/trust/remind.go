package trust

import (
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Remind copies into dir, where root is pinned, what another directory says was seen of the store under the same root: a
// client of dir then refuses a store that went back in time since. A directory that pins another root, or none, says
// nothing. Nothing is locked. A publisher that writes meanwhile does no harm: each file that is read is at least as new
// as the ones before, and a snapshot older than the timestamp only means that the store is asked for the newer one.
func Remind(dir, from string, root []byte) error {
	if err := keptAs(from, "directory", os.FileMode.IsDir); err != nil {
		return err
	}
	pin, found, err := walk.Read(filepath.Join(from, pinFile))
	if err != nil {
		return unreadKept(filepath.Join(from, pinFile), err)
	}
	if !found || string(pin) != string(digestOf(root)) {
		return nil
	}
	for _, file := range []struct {
		name  string
		sound func([]byte) error
	}{{snapshotFile, isJSON}, {timestampFile, isJSON}, {rootFile, isRoot}} {
		data, found, err := walk.Read(filepath.Join(from, file.name))
		if err != nil {
			return unreadKept(filepath.Join(from, file.name), err)
		}
		if !found || file.sound(data) != nil { // a publisher repairs what was damaged
			continue
		}
		if err := (seen{dir: dir}).keep(file.name, data); err != nil {
			return err
		}
	}
	return nil
}
