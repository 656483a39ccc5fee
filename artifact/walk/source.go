package walk

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Source refuses a file that an unprivileged user can change, or exchange for another, by any part of the way to it,
// links included. Those who control the directory top in the same way are trusted; "" trusts none of them. It looks
// whatever the root follows otherwise.
func (r *Root) Source(p, top string) error {
	by, err := r.parties(p)
	if err != nil || len(by) == 0 {
		return pathError("open", p, err)
	}
	var trusted []controller
	if top != "" {
		if trusted, err = r.parties(top); err != nil {
			return pathError("open", top, err)
		}
	}
	for _, c := range by {
		if !slices.ContainsFunc(trusted, func(t controller) bool { return t.kind == c.kind && t.id == c.id }) {
			return &UnsafeError{Path: p, Component: p, By: c.String(), Source: true}
		}
	}
	return nil
}

// parties are those who can make a path mean something else, or change what it leads to.
func (r *Root) parties(p string) (by []controller, err error) {
	if err := wellFormed(p); err != nil {
		return nil, err
	}
	for range maxRaces {
		by = nil
		all := *r.unanchored()
		all.safe, all.noLinks, all.collect = true, false, func(more []controller) { by = append(by, more...) }
		if err = all.collectOnce(p); !errors.Is(err, errRaced) {
			return by, err
		}
	}
	return nil, unix.EAGAIN
}

func (r *Root) collectOnce(p string) error {
	w := newWalker(r, p)
	defer w.close()
	if err := w.walk(true); err != nil {
		return err
	}
	way, err := w.controllers()
	if err != nil {
		return err
	}
	r.collect(way)
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, w.last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if fd, err = w.sameKind(fd, err); err != nil {
		return err
	}
	defer unix.Close(fd)
	end, err := r.controllers(fd)
	r.collect(end)
	return err
}
