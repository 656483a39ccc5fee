package site

import (
	"io"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// kept keeps data between runs in files of the host's cache that only root can change. Errors are ignored: what cannot
// be kept is computed again.
type kept struct{ site *Site }

// mostKept bounds how many bytes of a file are read.
const mostKept = 4 << 20

// Read implements host.Kept.
func (k kept) Read(name string) (data []byte) {
	k.trusted(func(root *walk.Root) {
		k.open(root, func(dir *walk.Dir) {
			if dir.CheckRootOnly(name) != nil {
				return
			}
			f, err := walk.Regular(dir.Open(name))
			if err != nil {
				return
			}
			defer f.Close()
			if data, err = io.ReadAll(io.LimitReader(f, mostKept)); err != nil {
				data = nil
			}
		})
	})
	return data
}

// Write implements host.Kept.
func (k kept) Write(name string, data []byte) {
	place := k.site.Layout.Kept()
	k.trusted(func(root *walk.Root) {
		if root.ByName(k.site.Layout.Inside(place)) != nil || durable.MkdirAll(place, 0o700) != nil {
			return
		}
		k.open(root, func(*walk.Dir) {
			_ = durable.SweepAbandoned(place)
			// What reads the data checks that it is complete, so that it need not be synced.
			_ = durable.WriteSoon(filepath.Join(place, name), data, 0o600)
		})
	})
}

// open calls use with the directory, if there is one that only root can change.
func (k kept) open(root *walk.Root, use func(dir *walk.Dir)) {
	place := k.site.Layout.Inside(k.site.Layout.Kept())
	if root.ByName(place) != nil {
		return
	}
	dir, err := root.OpenDir(place)
	if err != nil {
		return
	}
	defer dir.Close()
	if dir.CheckRootOnly(".") == nil {
		use(dir)
	}
}

// trusted calls use with the host's tree. It does nothing for an agent that does not run as root.
func (k kept) trusted(use func(root *walk.Root)) {
	opened, root, err := k.site.OpenTrusting()
	if err != nil || root == nil {
		return
	}
	defer opened.Close()
	use(root)
}
