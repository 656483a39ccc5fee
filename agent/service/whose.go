package service

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// This file decides which evidence is trusted. A unit is assigned to a release only by evidence that an unprivileged
// user cannot forge, since root restarts such a unit, and its failure quarantines the release:
//
//	unit files             those that root alone can change, see rootsFiles
//	links in their paths   those that lead to the release without a component that another user controls, see safely
//	a process              its program, working directory and arguments if it runs as root, see proof
//	a socket               that root made, or that a process in a unit of the release has open, see Answering
//
// Once a unit is assigned to a release, its own main process shows what it runs, under any user: see evidence.

// proof returns the evidence of a process of a unit that may belong to no release. A user chooses the working directory
// and the arguments of a process, and may start any program of a release, so only a process of root proves something.
func (t trees) proof(p processes.Process) (release, test string) {
	if p.User != 0 {
		return "", ""
	}
	return t.evidence(p)
}

// rootsFiles reports whether only root can change the files of a unit. A file that no longer exists is accepted, as is
// a unit without files, which the init system created.
func rootsFiles(d units.Service) bool {
	for _, file := range d.Files {
		if !rootsFile(file) {
			return false
		}
	}
	return true
}

func rootsFile(file string) bool {
	root, err := walk.Open(walk.Options{Safe: true, Members: passwd.Members("")})
	if err != nil {
		return false
	}
	defer root.Close()
	f, err := root.OpenFile(file, unix.O_PATH)
	if found, err := walk.Found(err); err != nil || !found {
		return err == nil
	}
	defer f.Close()
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	return err == nil && st.Mode&0o022 == 0 && (st.Uid == 0 || int(st.Uid) == unix.Geteuid())
}

// rootsLink reports whether a link belongs to root or to the agent's user.
func rootsLink(link string) bool {
	var st unix.Stat_t
	err := unix.Lstat(link, &st)
	return err == nil && (st.Uid == 0 || int(st.Uid) == unix.Geteuid())
}

// safely reports whether no component of a path is a link that an unprivileged user made or could replace, and that
// leads to files of another user.
func safely(file string) bool {
	root, err := walk.Open(walk.Options{Safe: true, Members: passwd.Members("")})
	if err != nil {
		return false
	}
	defer root.Close()
	dir, _, err := root.Follow(file)
	if err == nil {
		_ = dir.Close()
	}
	var unsafe *walk.UnsafeError
	return !errors.As(err, &unsafe)
}

// ofSession reports whether a unit is the manager of a user's own units, or prepares its runtime directory.
func ofSession(unit string) bool {
	return strings.HasPrefix(unit, "user@") || strings.HasPrefix(unit, "user-runtime-dir@")
}

// Disregarded is a unit that seems to run a release and is not assigned to it, since the user of its process could make
// any unit seem so.
type Disregarded struct {
	Unit    string
	User    string // of the main process
	Release string // that it seems to run
	Test    string // the test that shows it
}

// Disregard returns the units that seem, without proof, to run a release of a project that names no units.
func Disregard(ctx context.Context, s System, projects []Project, members []Member) ([]Disregarded, error) {
	loaded, err := s.Loaded(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{s.Own(): true}
	for _, m := range members {
		known[m.Unit] = true
	}
	loaded = slices.DeleteFunc(loaded, func(unit string) bool { return known[unit] || ofSession(unit) })
	described, err := describeAll(ctx, s, loaded)
	if err != nil {
		return nil, err
	}
	var all []Disregarded
	for i, unit := range loaded {
		p := process(s, described[i])
		for _, project := range projects {
			if release, test := treesOf(project).evidence(p); release != "" && project.Units == nil {
				all = append(all, Disregarded{Unit: unit, User: processes.UserName(p.User),
					Release: strings.TrimSpace(project.Name + " " + release), Test: test})
				break
			}
		}
	}
	return all, nil
}
