package walk

import (
	"cmp"
	"errors"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Trust selects the users who may control a file whose content is used.
type Trust struct {
	Tops []string   // directories whose controllers are trusted for files in them, by any path
	To   *Recipient // destination of the content, whose controllers are trusted; nil for none
}

// Recipient is the destination of the content of a file.
type Recipient struct {
	Path string // a file or directory, which need not exist yet; "" for none
	UID  int    // its future owner, or the user that runs it; -1 for the present owner, 0 for only root
	What string // its description; if "", Path is used
}

func (t *Recipient) what() string { return cmp.Or(t.What, t.Path, "what root reads") }

// Source returns an error for a file that an unprivileged user can change or replace, by any part of the way to it,
// including links, unless that user is trusted. It checks this even if the root is not safe.
func (r *Root) Source(p string, trust Trust) error {
	by, trusted, err := r.against(p, trust, false, (*walker).collectAll)
	if err != nil {
		return err
	}
	return refuseSource(p, by, trusted, trust.To)
}

// SourceLink is like Source for a link itself, whose text is used: its owner and the way to it are checked, and its
// target is not.
func (r *Root) SourceLink(p string, trust Trust) error {
	by, trusted, err := r.against(p, trust, false, (*walker).collectLink)
	if err != nil {
		return err
	}
	return refuseSource(p, by, trusted, trust.To)
}

// against returns the parties that control a path, and the trusted parties. The trusted ones are only determined if
// there are others, or if always is set.
func (r *Root) against(p string, trust Trust, always bool, collect func(*walker) error) (by, trusted []controller,
	err error) {
	var way []fileID
	by, err = r.look(p, func(w *walker) (err error) {
		if err = collect(w); err == nil {
			way, err = w.ids()
		}
		return err
	})
	if err != nil || len(by) == 0 && !always {
		return by, nil, pathError("open", p, err)
	}
	trusted, err = r.trust(trust, way)
	return by, trusted, err
}

// SourceTree is like Source for a directory with everything in it, or a file. The targets of links in it are not
// checked.
func (r *Root) SourceTree(p string, trust Trust) error {
	by, trusted, err := r.against(p, trust, true, (*walker).collectAll)
	if err != nil {
		return err
	}
	if err := refuseSource(p, by, trusted, trust.To); err != nil {
		return err
	}
	fd, err := r.Openat(p, unix.O_PATH)
	if err != nil {
		return pathError("open", p, err)
	}
	d := newDir(r, fd, p)
	defer d.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return pathError("stat", p, err)
	}
	return d.Walk(Visit{Enter: func(dir *Dir, name string, st *unix.Stat_t) (bool, error) {
		full := below(dir.path, name)
		by, err := dir.partiesOf(name, st)
		if err != nil {
			return false, pathError("open", full, err)
		}
		return st.Mode&unix.S_IFMT == unix.S_IFDIR, refuseSource(p, at(by, full), trusted, trust.To)
	}})
}

// partiesOf returns the parties that control one name in a directory.
func (d *Dir) partiesOf(name string, st *unix.Stat_t) ([]controller, error) {
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return d.root.ownerOf(st), nil
	}
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var is unix.Stat_t // of the file that was opened
	if err := unix.Fstat(fd, &is); err != nil {
		return nil, err
	}
	return d.root.controllersOf(fd, &is)
}

func (r *Root) ownerOf(st *unix.Stat_t) []controller {
	if r.unprivileged(st.Uid) {
		return []controller{{kind: 'u', id: st.Uid}}
	}
	return nil
}

// refuseSource returns an error if a party is not trusted.
func refuseSource(p string, by, trusted []controller, to *Recipient) error {
	for _, c := range by {
		if slices.ContainsFunc(trusted, c.within) {
			continue
		}
		refused := &UnsafeError{Path: p, Component: cmp.Or(c.at, p), By: c.String(), Source: true}
		if to != nil {
			refused.Into = to.what()
		}
		return refused
	}
	return nil
}

// within reports whether all users of one party belong to another.
func (c controller) within(t controller) bool {
	switch {
	case t.kind == c.kind && t.id == c.id, t.kind == 'o':
		return true
	case t.kind != 'g' || len(t.members) == 0:
		return false
	case c.kind == 'u':
		return slices.Contains(t.members, c.id)
	}
	return c.kind == 'g' && len(c.members) > 0 &&
		!slices.ContainsFunc(c.members, func(uid uint32) bool { return !slices.Contains(t.members, uid) })
}

func (r *Root) trust(trust Trust, way []fileID) (all []controller, err error) {
	for _, top := range trust.Tops {
		if top == "" {
			continue
		}
		var id fileID
		by, err := r.look(top+"/.", func(w *walker) (err error) {
			if err = w.collectAll(); err == nil {
				id, err = idOf(w.here().fd)
			}
			return err
		})
		found, err := Found(err)
		if err != nil {
			return nil, pathError("open", top, err)
		}
		if found && slices.Contains(way, id) { // a directory that all users can change makes none of them trusted
			all = append(all, slices.DeleteFunc(by, func(c controller) bool { return c.kind == 'o' })...)
		}
	}
	if trust.To == nil {
		return all, nil
	}
	if trust.To.UID > 0 {
		all = append(all, controller{kind: 'u', id: uint32(trust.To.UID)})
	}
	if trust.To.Path == "" {
		return all, nil
	}
	by, err := r.look(trust.To.Path, func(w *walker) error { return w.collectTarget(trust.To.UID) })
	return append(all, by...), pathError("open", trust.To.Path, err)
}

// look collects the parties on the way of a path.
func (r *Root) look(p string, collect func(*walker) error) (by []controller, err error) {
	if err := wellFormed(p); err != nil {
		return nil, err
	}
	for range maxRaces {
		by = nil
		all := *r.unanchored()
		all.safe, all.noLinks, all.collect = true, false, func(more []controller) { by = append(by, more...) }
		w := newWalker(&all, p)
		err = collect(w)
		w.close()
		if !errors.Is(err, errRaced) {
			return by, err
		}
	}
	return nil, unix.EAGAIN
}

// collectWay collects the parties of the directories on the way of a walk.
func (w *walker) collectWay() error {
	way, err := w.controllers()
	w.root.collect(way)
	return err
}

// ids returns the IDs of the directories on the way.
func (w *walker) ids() ([]fileID, error) {
	all := make([]fileID, len(w.way))
	for i, s := range w.way {
		var err error
		if all[i], err = idOf(s.fd); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (w *walker) collectAll() error {
	if err := w.walk(true); err != nil {
		return err
	}
	if err := w.collectWay(); err != nil {
		return err
	}
	return w.atLast(func(fd int, st *unix.Stat_t) error { return w.collectOne(fd, st) })
}

// collectLink collects the parties of the directories on the way to a link, and its owner.
func (w *walker) collectLink() error {
	if err := w.walk(false); err != nil {
		return err
	}
	if err := w.collectWay(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(w.here().fd, w.last, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	w.root.collect(at(w.root.ownerOf(&st), path.Join(w.here().name, w.last)))
	return nil
}

// collectTarget collects the parties of a path that will be written: those of the existing directories on the way, and
// those of an existing target that keeps its owner.
func (w *walker) collectTarget(uid int) error {
	if err := w.walk(true); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return w.collectWay()
		}
		return err
	}
	if err := w.collectWay(); err != nil {
		return err
	}
	err := w.atLast(func(fd int, st *unix.Stat_t) error {
		if uid >= 0 && uint32(uid) != st.Uid && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil
		}
		return w.collectOne(fd, st)
	})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// atLast calls a function with the target of a walk.
func (w *walker) atLast(call func(fd int, st *unix.Stat_t) error) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, w.last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if fd, err = w.sameKind(fd, err); err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return call(fd, &st)
}

func (w *walker) collectOne(fd int, st *unix.Stat_t) error {
	by, err := w.root.controllersOf(fd, st)
	w.root.collect(at(by, path.Join(w.here().name, w.last)))
	return err
}

// at sets the path that parties control.
func at(by []controller, name string) []controller {
	for i := range by {
		by[i].at = name
	}
	return by
}
