package site

// What the agent does about files and directories that it reads or runs as root, and that another user can change:
//
//	a directory above what is the agent's    the run ends: an operator has to give it back to root
//	a directory or link that the agent made  the run gives it back to root and notes it; status shows it as drift
//	the content of a project's pillar        it is not rendered until an operator has looked at it
//	the content of a release                 it is compared with the signed list, see intact in package agent
//	the configuration                        none of it is read, see CheckConfiguration
//	a program that root runs                 the run ends, see CheckPrograms; a hook ends its stage, see CheckScript

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckAbove returns an error if an unprivileged user controls a directory above a path of the agent's own: such a user
// could replace what the agent keeps there.
func (s *Site) CheckAbove(at string) error {
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	err = root.ByName(s.Layout.Inside(at))
	var unsafe *walk.UnsafeError
	if !errors.As(err, &unsafe) || unsafe.Component == s.Layout.Inside(at) {
		return nil // the path itself is checked elsewhere, and its reader reports other errors
	}
	wrong := s.Layout.Path(unsafe.Component)
	return exit.WithCode(exit.Refused,
		diag.Exposed.Hint(
			fmt.Errorf("%s can be changed by %s, who could replace what the agent runs as root: nothing in it is read or run",
				wrong, unsafe.By),
			"look at what is there (ls -la %s), then: %s", wrong, cure(wrong, "755")))
}

// cure returns the command that gives a file, directory or link to root alone. It replaces a file by a copy, since
// another user may have it open for writing.
func cure(path, mode string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return "chown -h root: " + path
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		return fmt.Sprintf("cp --remove-destination %[1]s %[1]s.new && chmod %[2]s %[1]s.new && mv -f %[1]s.new %[1]s", path,
			mode)
	}
	command := "chown root: " + path + " && chmod " + mode + " " + path
	if n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil); err == nil && n > 0 {
		command = "setfacl -b " + path + " && " + command
	}
	return command
}

// sharable is a directory or link that the agent made.
type sharable struct {
	path   string
	closed bool // a directory that other users have no access to
}

// withOwn adds the project that the agent works for alone. It may be in no ledger, if no deploy of it has succeeded.
func (s *Site) withOwn(projects []string) []string {
	if s.Alone == "" || slices.Contains(projects, s.Alone) {
		return projects
	}
	return append(slices.Clone(projects), s.Alone)
}

// sharables returns the directories and links that the agent made for projects, the outer ones first.
func (s *Site) sharables(projects []string) []sharable {
	all := []sharable{{path: s.Layout.Projects()}}
	if s.Alone == "" {
		all = append(all, sharable{path: s.Layout.BaseLink()}, sharable{path: s.Layout.ServiceLink()})
	}
	for _, name := range projects {
		p := s.LayoutOf(name)
		all = append(all, sharable{path: p.Dir}, sharable{path: p.Releases()}, sharable{p.Archives(), true},
			sharable{p.Pillar(), true}, sharable{p.Git("project"), true}, sharable{p.Git("pillar"), true})
		for _, link := range []string{"next", "current", "previous", "project"} {
			all = append(all, sharable{path: filepath.Join(p.Dir, link)})
		}
	}
	return all
}

// sharedWith returns who other than root can change a directory or link, or that a closed directory is accessible to
// others. It returns "" if there is no such user.
func (s sharable) sharedWith(dir *walk.Dir, name string) (string, error) {
	st, err := dir.Lstat(name)
	if found, err := walk.Found(err); !found {
		return "", err
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFLNK {
		return "", nil // it is set aside
	}
	var unsafe *walk.UnsafeError
	switch err := dir.CheckRootOnly(name); {
	case errors.As(err, &unsafe):
		return "could be changed by " + unsafe.By, nil
	case err != nil:
		return "", err
	case s.closed && kind == unix.S_IFDIR && st.Mode&0o077 != 0:
		return fmt.Sprintf("had mode %04o", st.Mode&0o7777), nil
	}
	return "", nil
}

// eachShared calls do for each directory and link that the agent made for projects and that other users can change or,
// if it is closed, access.
func (s *Site) eachShared(projects []string, do func(s sharable, dir *walk.Dir, name, why string) error) error {
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	pushed, err := s.pushedPillars(root, s.withOwn(projects))
	if err != nil {
		return fmt.Errorf("looking for pillars of releases: %w", err)
	}
	for _, one := range append(s.sharables(s.withOwn(projects)), pushed...) {
		if err := one.look(root, s.Layout.Inside(one.path), do); err != nil {
			return fmt.Errorf("looking at who may change %s: %w", s.Layout.Inside(one.path), err)
		}
	}
	return nil
}

func (s sharable) look(root *walk.Root, at string, do func(s sharable, dir *walk.Dir, name, why string) error) error {
	dir, name, err := root.Parent(at)
	if walk.Nowhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	why, err := s.sharedWith(dir, name)
	if err != nil || why == "" {
		return err
	}
	return do(s, dir, name, why)
}

// ReclaimShared gives the directories and links that the agent made for projects back to root alone, and returns notes
// about them. In a dry run it only returns the notes.
func (s *Site) ReclaimShared(projects []string, test bool) (notes []string, err error) {
	err = s.eachShared(projects, func(one sharable, dir *walk.Dir, name, why string) error {
		at := s.Layout.Inside(one.path)
		if test {
			notes = append(notes, fmt.Sprintf("%s %s; a deploy makes it root's alone again", at, why))
			return nil
		}
		err := one.own(dir, name, s.TrustedUsers())
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) {
			notes = append(notes, fmt.Sprintf("%s %s, and that could not be changed: %v", at, why, err))
			return nil
		}
		if err == nil {
			notes = append(notes, fmt.Sprintf("%s %s; it is root's alone again", at, why))
		}
		return err
	})
	return notes, err
}

// own gives a directory or link to root alone. The target of a link cannot be changed and stays: if it is not what is
// deployed, the agent corrects the link by the ledger.
func (s sharable) own(dir *walk.Dir, name string, trusted []uint32) error {
	st, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !slices.Contains(trusted, st.Uid) {
		if err := dir.Chown(name, 0, 0); err != nil {
			return err
		}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	if err := dir.DropACL(name); err != nil {
		return err
	}
	mode := fs.FileMode(st.Mode & 0o755)
	if s.closed {
		mode = 0o700
	}
	return dir.Chmod(name, mode)
}

// SharedDrift returns the directories and links of a pair that the next run gives back to root, and the reason why a
// pillar is not rendered. It returns nothing for a host that runs refuse.
func (s *Site) SharedDrift(pair ledger.Pair) (found []string) {
	if s.CheckAbove(s.Layout.Projects()) != nil {
		return nil
	}
	err := s.eachShared(ProjectsOf(pair), func(one sharable, _ *walk.Dir, _, why string) error {
		found = append(found, fmt.Sprintf("%s %s; the next run makes it root's alone again", s.Layout.Inside(one.path),
			strings.Replace(strings.Replace(why, "could", "can", 1), "had", "has", 1)))
		return nil
	})
	if err != nil {
		found = append(found, err.Error())
	}
	if err := s.CheckPillar(pair.Service.Project); err != nil && len(found) == 0 {
		found = append(found, fmt.Sprintf("%v; %s", err, diag.HintOf(err)))
	}
	return found
}
