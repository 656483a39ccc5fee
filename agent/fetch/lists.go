package fetch

import (
	"os"
	"sync"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Lists caches the lists of releases' files by the paths of their files. A run needs each list several times, and the
// list of a large release takes long to read. A nil *Lists caches nothing.
type Lists struct {
	mu   sync.Mutex
	read map[string]readList
}

// readList is a list as it was read from a file.
type readList struct {
	from fileStamp
	list *manifest.Manifest // nil if the file is not a list
}

// fileStamp identifies the content of a file: the agent replaces a list by a rename, which changes the stamp.
type fileStamp struct {
	device, inode     uint64
	size              int64
	modified, changed syscall.Timespec
}

func stampOf(file string) (fileStamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return fileStamp{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileStamp{}, nil
	}
	device := uint64(st.Dev) //nolint:unconvert // it has other types elsewhere
	return fileStamp{device: device, inode: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}, nil
}

// Of returns the list in a file, which must not be modified; nil if there is no such file, or it is not a list. It
// reads the file again only after a change. found reports whether there is a file.
func (l *Lists) Of(file string) (list *manifest.Manifest, found bool, err error) {
	if l == nil {
		return ReadTree(file)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	stamp, err := stampOf(file)
	if found, err := walk.Found(err); err != nil || !found {
		return nil, false, err
	}
	if known, ok := l.read[file]; ok && known.from == stamp && stamp.inode != 0 {
		return known.list, true, nil
	}
	if list, found, err = ReadTree(file); err != nil || !found {
		return nil, false, err
	}
	if l.read == nil {
		l.read = map[string]readList{}
	}
	l.read[file] = readList{stamp, list}
	return list, true, nil
}

// ReadTree reads the list of a tree from its file. The list is nil if the file is damaged.
func ReadTree(file string) (list *manifest.Manifest, found bool, err error) {
	data, found, err := walk.Read(file)
	if err != nil || !found {
		return nil, false, err
	}
	if list, err = manifest.Decode(data); err != nil {
		return nil, true, nil
	}
	return list, true, nil
}
