package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file decides what becomes of files and directories that the agent, as root, reads or runs, and that another user
// can change:
//
//	a directory above what is the agent's    the run ends: an operator has to give it back to root
//	a directory or link that the agent made  it becomes root's again, is noted, and is drift in status
//	the content of a project's pillar        it is not rendered until an operator has looked at it
//	the content of a release                 it is compared with the signed list, see intact
//	the configuration                        nothing of it is read, see CheckConfiguration

// trustingSafely opens the host's tree so that only root, and the users whom the agent trusts, are privileged. It is
// nil where owners mean nothing to this process, or where the tree does not exist. The caller must close the first root.
func (a *Agent) trustingSafely() (opened, root *walk.Root, err error) {
	users := a.trusted()
	if users == nil {
		return nil, nil, nil
	}
	opened, err = a.safely()
	if found, err := walk.Found(err); !found {
		return nil, nil, err
	}
	return opened, opened.As(slices.Max(users)), nil // the one other than root, if there is one
}

// checkAbove refuses a host on which an unprivileged user controls a directory above a path of the agent's own: such a
// user can replace whatever the agent keeps there.
func (a *Agent) checkAbove(at string) error {
	opened, root, err := a.trustingSafely()
	if root == nil {
		return err
	}
	defer opened.Close()
	err = root.ByName(a.Layout.Inside(at))
	var unsafe *walk.UnsafeError
	if !errors.As(err, &unsafe) || unsafe.Component == a.Layout.Inside(at) {
		return nil // what it leads to is looked at on its own, and what cannot be read is reported by what reads it
	}
	wrong := a.Layout.Path(unsafe.Component)
	return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("%s can be changed by %s, who could replace what the agent runs as root: nothing in it is read or run", wrong, unsafe.By),
		"look at what is there (ls -la %s), then: %s", wrong, cure(wrong, "755")))
}

// cure is the command that makes a file, directory or link root's alone.
func cure(path, mode string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return "chown -h root: " + path
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
	closed bool // it is a directory that other users have no access to
}

// sharables are the directories and links that the agent made for projects, the outer ones first.
func (a *Agent) sharables(projects []string) []sharable {
	all := []sharable{{path: a.Layout.Projects()}}
	if a.alone == "" {
		all = append(all, sharable{path: a.Layout.BaseLink()}, sharable{path: a.Layout.ServiceLink()})
	}
	for _, name := range projects {
		p := a.project(name)
		all = append(all, sharable{path: p.Dir}, sharable{path: p.Releases()}, sharable{p.Archives(), true}, sharable{p.Pillar(), true})
		for _, link := range []string{"next", "current", "previous", "project"} {
			all = append(all, sharable{path: filepath.Join(p.Dir, link)})
		}
	}
	return all
}

// sharedWith says who other than root can change a directory or link, or has access to one that is closed. It is ""
// for no user.
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
	switch err := dir.Sole(name); {
	case errors.As(err, &unsafe):
		return "could be changed by " + unsafe.By, nil
	case err != nil:
		return "", err
	case s.closed && kind == unix.S_IFDIR && st.Mode&0o077 != 0:
		return fmt.Sprintf("had mode %04o", st.Mode&0o7777), nil
	}
	return "", nil
}

// eachShared calls do for each directory and link of projects that the agent made and that is not root's alone.
func (a *Agent) eachShared(projects []string, do func(s sharable, dir *walk.Dir, name, why string) error) error {
	opened, root, err := a.trustingSafely()
	if root == nil {
		return err
	}
	defer opened.Close()
	for _, s := range a.sharables(projects) {
		if err := s.look(root, a.Layout.Inside(s.path), do); err != nil {
			return fmt.Errorf("looking at who may change %s: %w", a.Layout.Inside(s.path), err)
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

// takeBackShared makes the directories and links that the agent made for projects root's alone again, and says which. A dry
// run only says which.
func (a *Agent) takeBackShared(projects []string, test bool) (notes []string, err error) {
	err = a.eachShared(projects, func(s sharable, dir *walk.Dir, name, why string) error {
		at := a.Layout.Inside(s.path)
		if test {
			notes = append(notes, fmt.Sprintf("%s %s; a deploy makes it root's alone again", at, why))
			return nil
		}
		err := s.own(dir, name, a.trusted())
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

// own makes a directory or link root's alone. The text of a link, which nobody can change, stays: where it leads to
// something else than what is deployed, the ledger puts it right.
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

// sharedDrift says which directories and links of a pair the next run makes root's alone again, and what of a pillar is
// not rendered.
func (a *Agent) sharedDrift(pair ledger.Pair) (found []string) {
	if err := a.checkAbove(a.Layout.Projects()); err != nil {
		return []string{fmt.Sprintf("%v; %s", err, diag.HintOf(err))}
	}
	err := a.eachShared(projectsOf(pair), func(s sharable, _ *walk.Dir, _, why string) error {
		found = append(found, fmt.Sprintf("%s %s; the next run makes it root's alone again", a.Layout.Inside(s.path), strings.Replace(strings.Replace(why, "could", "can", 1), "had", "has", 1)))
		return nil
	})
	if err != nil {
		found = append(found, err.Error())
	}
	if err := a.checkPillar(pair.Service.Project); err != nil && len(found) == 0 {
		found = append(found, fmt.Sprintf("%v; %s", err, diag.HintOf(err)))
	}
	return found
}

// sharedPillar is a pillar of which another user can change, or could have changed, a part.
type sharedPillar struct {
	layout  layout.Layout
	project string
	parts   []*walk.UnsafeError
}

func (e *sharedPillar) Error() string {
	var parts []string
	for _, part := range e.parts {
		parts = append(parts, fmt.Sprintf("%s can be changed by %s", e.layout.Path(part.Component), part.By))
	}
	return fmt.Sprintf("the pillar of %s is not rendered, since root does what it says: %s", e.project, strings.Join(parts, "; "))
}

// Hint says what an operator does about it.
func (e *sharedPillar) Hint() string {
	var commands []string
	for _, part := range e.parts {
		commands = append(commands, cure(e.layout.Path(part.Component), "go-w"))
	}
	return "read what it says now, which another user may have written; if it is right: " + strings.Join(commands, "; ")
}

// checkState refuses what the agent remembers where another user can change a part of it, or could have written one: the
// root of trust and the ledger decide what root runs.
func (a *Agent) checkState() error {
	opened, root, err := a.trustingSafely()
	if root == nil {
		return err
	}
	defer opened.Close()
	state := a.Layout.State()
	parts, err := root.Shared(a.Layout.Inside(state), mostParts)
	if len(parts) == 0 {
		if walk.Nowhere(err) {
			return nil
		}
		return err
	}
	var named []string
	for _, part := range parts {
		named = append(named, fmt.Sprintf("%s can be changed by %s", a.Layout.Path(part.Component), part.By))
	}
	return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("what the agent keeps in %s decides what root runs: %s", state, strings.Join(named, "; ")),
		"find out why; if you trust what is there: chown -R root: %[1]s && chmod -R go-w %[1]s; if not, remove it and deploy with --trust-root", state))
}

// checkSalt refuses directories of states that the host has beside its releases where another user can change what is in
// them: SLS files of procedures include files from there.
func (a *Agent) checkSalt() error {
	return ofWork(a.checkAbove(a.Layout.Path("/srv/salt/_")))
}

// mostParts is how many parts of a pillar an error names.
const mostParts = 5

// checkPillar refuses the pillar that this host alone has of a project where another user can change a part of it, or
// could have written one: the run cannot know what such a file said before.
//
// What stands in the place of the pillar's directory is refused, too: states that run without their pillar may do harm.
func (a *Agent) checkPillar(project string) error {
	if project == "" {
		return nil
	}
	if err := a.misplacedPillar(project); err != nil {
		return err
	}
	opened, root, err := a.trustingSafely()
	if root == nil {
		return err
	}
	defer opened.Close()
	parts, err := root.Shared(a.Layout.Inside(a.project(project).Pillar()), mostParts)
	if len(parts) > 0 {
		shared := &sharedPillar{layout: a.Layout, project: project, parts: parts}
		return exit.WithCode(exit.Refused, diag.WithHint(&withoutPillar{project, shared}, "%s", shared.Hint()))
	}
	if err == nil || walk.Nowhere(err) {
		return nil // no other user made it so, since the way is safe; what reads it reports it
	}
	return fmt.Errorf("looking at who may change the pillar of %s: %w", project, err)
}

// withoutPillar is why the pillar that this host alone has of a project is not rendered.
type withoutPillar struct {
	project string
	err     error
}

func (e *withoutPillar) Error() string { return e.err.Error() }
func (e *withoutPillar) Unwrap() error { return e.err }

// misplacedPillar refuses what stands in the place of the directory of a project's pillar.
func (a *Agent) misplacedPillar(project string) error {
	at := a.project(project).Pillar()
	if walk.Misplaced(at) {
		return exit.WithCode(exit.Usage, diag.WithHint(
			&withoutPillar{project, fmt.Errorf("the pillar of %s is not rendered: %s is no directory", project, at)},
			"move it away, and bring the directory back from a backup: mv -T %[1]s %[1]s.damaged; where this host had no pillar of its own for %s, that is all", at, project))
	}
	return nil
}

// baseWithout converges base where a run ends because the pillar of the service is not rendered: that is no
// reason for base, which its own keys sign, to stand still. It gets the pillar of the releases alone. Where the top file
// of the service decides which states of base run, none do.
func (r *run) baseWithout(ctx context.Context, refused error) error {
	var without *withoutPillar
	runs := r.ledger.Runs()
	if !errors.As(refused, &without) || runs == nil || runs.Base == nil || r.alone != "" || r.ledger.Running != nil || r.ledger.Failing != nil {
		return refused
	}
	if !runs.BaseAlone() && r.Config.Top != topMerge {
		service, _ := r.pairDirs(*runs)
		found, err := walk.Named(filepath.Join(r.Layout.Path(layout.StateRoots(service, "")[0]), "top.sls"))
		if err != nil {
			return errors.Join(refused, err)
		}
		if found {
			r.record.Note("%s does not converge alone, since the top file of %s decides what of it runs", runs.Base, runs.Service)
			return refused
		}
	}
	r.record.Note("%s converges alone, without the pillar that this host has of %s", runs.Base, without.project)
	if err := r.intact(ctx, *runs); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
		return refused
	}
	r.pillarless = true
	if err := r.converge(ctx, ledger.Pair{Base: runs.Base}); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
	}
	return refused
}
