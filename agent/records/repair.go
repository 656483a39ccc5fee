package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// repair makes sure that existing paths of the agent are of the right kind: a directory or a regular file. Anything
// else, such as a link that leads nowhere, would fail every later run. repair sets it aside, so that the run continues
// as on a host that has lost it, and describes it in lost. The caller must hold the lock.
func (rs *Records) repair() (lost []string, err error) {
	s := setAside{agent: rs, id: report.NewID(rs.Time())}
	s.directory(rs.Layout.State())
	s.copies()
	s.errs = append(s.errs, rs.closeState())
	s.files(rs.Layout.State(), func(name string) bool {
		return strings.HasPrefix(name, "ledger") ||
			slices.Contains(rs.Layout.StateFiles(), filepath.Join(rs.Layout.State(), name))
	})
	for _, dir := range []string{rs.Layout.Reports(), filepath.Join(rs.Layout.Trust(), "projects"),
		filepath.Join(rs.Layout.State(), "projects"), filepath.Dir(rs.Layout.Roster("_"))} {
		s.directory(dir)
		s.files(dir, func(name string) bool { return filepath.Ext(name) == ".json" })
	}
	s.directory(rs.Layout.Trust())
	s.journals()
	trees := filepath.Dir(rs.Layout.Trees("_"))
	s.directory(trees)
	caches := append([]string{rs.Layout.Incoming()}, s.below(trees)...)
	for _, dir := range caches {
		s.directory(dir)
	}
	s.files(rs.Layout.Trust(), func(name string) bool { return name != "projects" })
	s.pages()
	for _, dir := range caches {
		s.cache(dir)
	}
	s.projects()
	s.trust()
	if err := rs.Requested(&ledger.Ledger{}); err != nil {
		s.away(rs.Layout.HoldRequest(), "could not be read, so hold or unhold this host again")
	}
	return s.lost, errors.Join(s.errs...)
}

// setAside renames files that are in the place of others.
type setAside struct {
	agent *Records
	id    string
	lost  []string
	errs  []error

	targets []fs.FileInfo // directories to which links in the places of the agent's own directories lead
}

// isTarget reports whether a link in the place of one of the agent's own directories leads to a directory, such as one
// that an operator moved. It is left where it is.
func (s *setAside) isTarget(info fs.FileInfo) bool {
	return slices.ContainsFunc(s.targets, func(target fs.FileInfo) bool { return os.SameFile(target, info) })
}

// away renames an existing path.
func (s *setAside) away(path, why string) {
	aside := path + layout.DamagedMark + s.id
	if err := durable.Rename(path, aside); err != nil {
		s.errs = append(s.errs, fmt.Errorf("setting aside %s, which %s: %w", s.agent.Layout.Inside(path), why, err))
		return
	}
	s.lost = append(s.lost, fmt.Sprintf("%s %s; it was set aside as %s", s.agent.Layout.Inside(path), why,
		filepath.Base(aside)))
}

// copies sets aside copies beside the releases that another user could have written.
func (s *setAside) copies() {
	opened, root, err := s.agent.OpenTrusting()
	if root == nil {
		s.unread(err)
		return
	}
	defer opened.Close()
	dir, err := root.OpenDir(s.agent.Layout.Inside(s.agent.Layout.Projects()))
	if err != nil {
		s.unread(err)
		return
	}
	defer dir.Close()
	s.unread(eachOf(dir, func(name string, st *unix.Stat_t) error {
		if !s.agent.isCopy(name) || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil
		}
		var unsafe *walk.UnsafeError
		err := dir.CheckRootOnly(name)
		if errors.As(err, &unsafe) {
			s.away(filepath.Join(s.agent.Layout.Projects(), name), "could be changed by "+unsafe.By)
			return nil
		}
		return err
	}))
}

// directory sets aside a file in the place of a directory. A link to a directory counts as one.
func (s *setAside) directory(path string) {
	if found, err := walk.Named(path); err != nil || !found {
		s.unread(err) // a missing directory is created when it is needed
		return
	}
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir():
		s.away(path, "was not a directory")
	case walk.Nowhere(err):
		s.away(path, "was a link that leads nowhere")
	case err == nil:
		target, err := walk.Target(path)
		if s.unread(err); target == "" {
			return
		}
		astray, err := s.agent.Astray(path)
		if astray != "" {
			s.away(path, "was "+astray)
			return
		}
		s.unread(err)
		s.targets = append(s.targets, info)
	default:
		s.unread(err)
	}
}

// Astray describes a link in the place of a directory that leads to a directory above itself, or to /srv/projects,
// /etc/corpus, the state directory or its trust metadata; "" for anything else. Such a directory would be in itself,
// or have the files of two.
func (rs *Records) Astray(path string) (string, error) {
	target, err := walk.Target(path)
	if err != nil || target == "" {
		return "", err
	}
	info, err := os.Stat(path)
	if walk.Nowhere(err) {
		return "", nil // reported as a directory that is missing
	}
	if err != nil {
		return "", err
	}
	others := []string{rs.Layout.State(), rs.Layout.Projects(), rs.Layout.Trust(), rs.Layout.Configuration()}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		others = append(others, dir)
		if dir == filepath.Dir(dir) || dir == rs.Layout.Path("/") {
			break
		}
	}
	for _, other := range others {
		is, err := os.Stat(other)
		if err != nil && !walk.Nowhere(err) {
			return "", err
		}
		if other != path && os.SameFile(is, info) {
			return fmt.Sprintf("a link to %s, which leads to %s", target, rs.Layout.Inside(other)), nil
		}
	}
	return "", nil
}

// unread records the error of an examination that failed, with which the run ends. A name below a path that leads
// nowhere does not exist.
func (s *setAside) unread(err error) {
	if err != nil && !walk.Nowhere(err) {
		s.errs = append(s.errs, err)
	}
}

// below returns the paths in a directory, without hidden ones and those that were set aside.
func (s *setAside) below(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.unread(err)
		return nil
	}
	var all []string
	for _, e := range entries {
		if !strings.Contains(e.Name(), layout.DamagedMark) && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// file sets aside anything but a regular file in the place of a file.
func (s *setAside) file(path string) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir() && s.isTarget(info):
	case err == nil && info.IsDir():
		s.away(path, "was a directory")
	case err == nil && !info.Mode().IsRegular():
		s.away(path, "was not a regular file")
	case walk.Nowhere(err):
		found, err := walk.Named(path)
		if s.unread(err); found {
			s.away(path, "was a link that leads nowhere")
		}
	default:
		s.unread(err)
	}
}

// files calls file for the chosen names in a directory.
func (s *setAside) files(dir string, chosen func(name string) bool) {
	for _, path := range s.below(dir) {
		if chosen(filepath.Base(path)) {
			s.file(path)
		}
	}
}

// cache removes everything but regular files from a directory whose content can be created again.
func (s *setAside) cache(dir string) {
	s.directory(dir)
	for _, path := range s.below(dir) {
		info, err := os.Lstat(path)
		if s.unread(err); err == nil && !info.Mode().IsRegular() {
			s.errs = append(s.errs, os.RemoveAll(path))
		}
	}
}

// pages checks the pages of the lists of releases, which can be read from the store again.
func (s *setAside) pages() {
	for _, dir := range s.below(filepath.Join(s.agent.Layout.Trust(), "projects")) {
		if strings.HasSuffix(dir, trust.PagesSuffix) {
			s.cache(dir)
		}
	}
}

func (s *setAside) journals() {
	own := s.agent.Layout.Journal()
	projects := filepath.Dir(s.agent.Layout.ProjectJournal("_"))
	for _, dir := range []string{filepath.Dir(own), own, projects} {
		s.directory(dir)
	}
	for _, dir := range append(s.below(projects), own) {
		s.directory(dir)
		s.files(dir, func(name string) bool { return filepath.Ext(name) == ".journal" })
	}
}

// projects checks the directories of projects.
func (s *setAside) projects() {
	all := s.agent.Layout.Projects()
	s.directory(all)
	copies, err := walk.Glob(filepath.Join(all, ".*.json"))
	s.errs = append(s.errs, err)
	for _, path := range append(copies, s.agent.Layout.ConfigCopy()) {
		s.file(path)
	}
	for _, dir := range s.below(all) {
		is, err := walk.Directory(dir)
		if s.unread(err); !is {
			continue // not a project, or one that a deploy creates again
		}
		p := s.agent.LayoutOf(filepath.Base(dir))
		s.directory(p.Releases())
		s.directory(p.Archives())
	}
}

// SetLinksAside sets aside anything but a link in the places of the links of projects, under a name with a run's ID.
func (rs *Records) SetLinksAside(projects []string, id string) (lost []string, err error) {
	s := setAside{agent: rs, id: id}
	for _, project := range projects {
		s.directory(rs.LayoutOf(project).Dir)
		for _, name := range []string{"next", "current", "previous", "project"} {
			path := filepath.Join(rs.LayoutOf(project).Dir, name)
			info, err := os.Lstat(path)
			if s.unread(err); err == nil && info.Mode()&fs.ModeSymlink == 0 {
				s.away(path, "was not a link")
			}
		}
	}
	return s.lost, errors.Join(s.errs...)
}

// trust sets aside damaged files of the trust metadata on this host.
func (s *setAside) trust() {
	damaged, root, err := trust.Damaged(s.agent.Layout.Trust())
	s.agent.CheckedRoot = root
	s.errs = append(s.errs, err)
	for _, d := range damaged {
		s.away(d.Path, d.Why)
	}
}

// repairLock sets aside what is in the place of the lock or of its directory. While there is no lock, several runs may
// do so at once; a lock on the directory above serialises them.
func (rs *Records) repairLock() (lost []string, err error) {
	state, file := rs.Layout.State(), rs.Layout.Lock()
	s := setAside{agent: rs, id: report.NewID(rs.Time())}
	if s.fine(state, fs.FileInfo.IsDir) && s.fine(file, func(i fs.FileInfo) bool { return i.Mode().IsRegular() }) {
		return nil, nil
	}
	above, err := walk.OpenDir(filepath.Dir(state))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := lock.Wait(above); err != nil {
		return nil, err
	}
	s.directory(state)
	s.file(file)
	return s.lost, errors.Join(s.errs...)
}

// fine reports whether a path does not exist, or has the expected kind of file.
func (s *setAside) fine(path string, is func(fs.FileInfo) bool) bool {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && is(info)
}

// ProjectDirs returns the directories of the projects of this host. If some cannot be read, it returns the others with
// the error.
func (rs *Records) ProjectDirs() ([]string, error) {
	s := setAside{agent: rs}
	var dirs []string
	for _, path := range s.below(rs.Layout.Projects()) {
		is, err := walk.Directory(path)
		if s.unread(err); is {
			dirs = append(dirs, path)
		}
	}
	return dirs, errors.Join(s.errs...)
}

// DataLost returns the projects of a pair that have lost their data directory, which no deploy touches, and those for
// which that cannot be determined.
func (rs *Records) DataLost(pair ledger.Pair) (lost, unseen []string) {
	for _, release := range pair.Releases() {
		p := rs.LayoutOf(release.Project)
		found, err := walk.Named(p.Data())
		switch {
		case err != nil:
			unseen = append(unseen, fmt.Sprintf("%s cannot be looked at: %v", rs.Layout.Inside(p.Data()), err))
		case !found:
			lost = append(lost, fmt.Sprintf("%s is gone, and with it all that %s kept there", rs.Layout.Inside(p.Data()),
				release.Project))
		}
	}
	return lost, unseen
}
