// Package link moves next, current and previous, the three links to releases on a host.
//
// Each move is a symlink made under another name, renamed over the old one with rename(2), and an
// fsync of the directory: at every moment each name leads to a complete release, and after a power failure
//
//	it is the old one or the new one. Links are relative.
package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// The names of the links.
const (
	next     = "next"
	current  = "current"
	previous = "previous"
	project  = "project" // -> current, the name by which procedures know it
)

// Set has the release that each link names; "" if there is no link.
type Set struct {
	Next     string `json:"next,omitempty"`
	Current  string `json:"current,omitempty"`
	Previous string `json:"previous,omitempty"`
}

// Links are the links of one project.
type Links struct{ project layout.Project }

// Of gives the links of a project.
func Of(p layout.Project) Links { return Links{project: p} }

// Read returns the targets of the links.
func (l Links) Read() (Set, error) {
	var s Set
	var errs []error
	for name, release := range s.fields() {
		target, err := os.Readlink(filepath.Join(l.project.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		*release = filepath.Base(target)
	}
	return s, errors.Join(errs...)
}

// Instead describes what is in the place of a link, such as "a directory"; "" for a link or nothing.
func (l Links) Instead(name string) (string, error) {
	info, err := os.Lstat(filepath.Join(l.project.Dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return "", nil
	case info.IsDir():
		return "a directory", nil
	case info.Mode().IsRegular():
		return "a plain file", nil
	}
	return "a special file", nil
}

func (s *Set) fields() map[string]*string {
	return map[string]*string{next: &s.Next, current: &s.Current, previous: &s.Previous}
}

// SetNext points next at a release. Where there is no current yet, it is pointed too, since
// units start from it.
func (l Links) SetNext(release string) error {
	if err := l.point(next, release); err != nil {
		return err
	}
	_, err := os.Lstat(filepath.Join(l.project.Dir, current))
	if errors.Is(err, fs.ErrNotExist) {
		err = l.point(current, release)
	}
	return errors.Join(err, l.name())
}

// Named reports whether the link project, by which procedures find the current release, exists.
func (l Links) Named() bool {
	target, err := os.Readlink(filepath.Join(l.project.Dir, project))
	return err == nil && target == current
}

// name makes the link by which procedures know what is current. It is looked at each time, since a
// first deploy may have been interrupted before it.
func (l Links) name() error {
	path := filepath.Join(l.project.Dir, project)
	if now, err := os.Readlink(path); err == nil && now == current {
		return nil
	}
	return durable.Symlink(current, path)
}

// SetCurrent points current at a release.
func (l Links) SetCurrent(release string) error { return l.point(current, release) }

// Promote makes a release current, and previous what was current before. A release that was current
// already keeps what was previous then. Doing it twice is the same as doing it once.
// A release that is not on the disk any more is forgotten.
func (l Links) Promote(release string, before Set) error {
	there, gone := l.Reachable(before)
	was := there.Current
	if was == release || was == "" {
		was = there.Previous
	}
	switch {
	case was == release:
	case was != "":
		if err := l.point(previous, was); err != nil {
			return err
		}
	case slices.Contains(gone, previous):
		if err := durable.Remove(filepath.Join(l.project.Dir, previous)); err != nil {
			return err
		}
	}
	return l.point(current, release)
}

// Reachable is a set without the releases that are not on disk any more, and the names of those links.
func (l Links) Reachable(s Set) (there Set, gone []string) {
	for name, release := range s.fields() {
		if *release == "" {
			continue
		}
		info, err := os.Stat(l.project.Release(*release))
		if err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
			*release = ""
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return s, gone
}

// Restore puts the links back to where they were; a link that did not exist is removed.
func (l Links) Restore(s Set) error {
	var errs []error
	for name, release := range s.fields() {
		if *release != "" {
			errs = append(errs, l.point(name, *release))
			continue
		}
		errs = append(errs, durable.Remove(filepath.Join(l.project.Dir, name)))
	}
	if s.Current == "" {
		errs = append(errs, durable.Remove(filepath.Join(l.project.Dir, project)))
	}
	return errors.Join(errs...)
}

// point makes a link name a release that is there.
func (l Links) point(name, release string) error {
	if _, err := os.Stat(l.project.Release(release)); err != nil {
		return fmt.Errorf("pointing %s of %s: %w", name, l.project.Name, err)
	}
	path := filepath.Join(l.project.Dir, name)
	target := l.project.ReleaseLink(release)
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	if err := durable.Symlink(target, path); err != nil {
		return fmt.Errorf("pointing %s of %s: %w", name, l.project.Name, err)
	}
	return nil
}

// Name makes a link outside the project, /srv/base or /srv/service, lead to it. A directory in its place is user
// data and is kept.
func Name(path string, p layout.Project) error {
	if now, err := os.Readlink(path); err == nil && now == p.LinkTarget() {
		return nil
	}
	info, err := os.Lstat(path)
	found, err := walk.Found(err)
	if err != nil {
		return err
	}
	if found && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a link: move it away, since it must lead to %s", path, p.Dir)
	}
	return durable.Symlink(p.LinkTarget(), path)
}
