// Package link moves next, current and previous, the three links to releases on a host.
//
// To move a link, it creates a symlink under another name, renames it over the old one with rename(2), and syncs the
// directory with fsync(2). So each name leads to a complete release at every moment, and after a power failure to the
// old or the new one. Links are relative.
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

// Of returns the links of a project.
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

// Instead describes the file in the place of a link, such as "a directory"; "" for a link or no file.
func (l Links) Instead(name string) (string, error) {
	info, err := os.Lstat(filepath.Join(l.project.Dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return "", nil
	}
	return walk.TypeName(info.Mode().Type()), nil
}

func (s *Set) fields() map[string]*string {
	return map[string]*string{next: &s.Next, current: &s.Current, previous: &s.Previous}
}

// SetNext points next at a release. If there is no current yet, SetNext points it at the release as well, since units
// start through it.
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

// name creates the link by which procedures find the current release. It checks the link each time, since a first
// deploy may have been interrupted before it was created.
func (l Links) name() error {
	path := filepath.Join(l.project.Dir, project)
	if now, err := os.Readlink(path); err == nil && now == current {
		return nil
	}
	return durable.Symlink(current, path)
}

// SetCurrent points current at a release.
func (l Links) SetCurrent(release string) error { return l.point(current, release) }

// Promote points current at a release, and previous at the release that was current before. If the release was current
// already, previous stays. Repeating it has no effect. A previous that leads to a release that is no longer on the disk
// is removed.
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

// Reachable returns a set without the releases that are no longer on the disk, and the names of their links.
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

// Restore points the links at the releases in a set, and removes a link without one.
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

// point points a link at a release, which must exist.
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

// Name points a link outside of the project, /srv/base or /srv/service, at the project. It returns an error for a
// directory in the place of the link, which is user data.
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
