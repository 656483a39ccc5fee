package host

import (
	"bytes"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Attributes opens the path and reads by the descriptor, so that no link can redirect it. It returns nil for a link,
// whose own attributes only the kernel sets.
func (t *tree) Attributes(p string) (all map[string][]byte, err error) {
	err = t.do("listxattr", p, func(dir int, name string) error {
		fd, st, err := t.place(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil
		}
		all = attributesOf(walk.Handle(fd))
		return nil
	})
	return all, err
}

// attributesOf returns the extended attributes that may be read, which excludes trusted ones and those of other users'
// namespaces.
func attributesOf(place string) map[string][]byte {
	names := attribute(func(buf []byte) (int, error) { return unix.Listxattr(place, buf) })
	var all map[string][]byte
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		if v := attribute(func(buf []byte) (int, error) { return unix.Getxattr(place, name, buf) }); v != nil {
			if all == nil {
				all = map[string][]byte{}
			}
			all[name] = v
		}
	}
	return all
}

func (t *tree) SetAttributes(p string, attributes map[string][]byte) error {
	return t.itself("setxattr", p, func(place string) error {
		old := attributesOf(place)
		var errs []error
		for name := range old {
			if _, stays := attributes[name]; !stays {
				errs = append(errs, unix.Removexattr(place, name))
			}
		}
		for name, v := range attributes {
			if !bytes.Equal(old[name], v) {
				errs = append(errs, unix.Setxattr(place, name, v, 0))
			}
		}
		return errors.Join(errs...)
	})
}
