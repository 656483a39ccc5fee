package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// checkTrusted returns an error for files that a user other than root and the caller can change: a tree is a program
// that runs with the rights of the user who plans it, and reads what that user may read. The directories of the trees
// are checked with everything in them. Given files (of a minion's configuration, of the pillar) are checked alone.
func checkTrusted(s *session.Settings, given []string) error {
	root, err := walk.Open(walk.Options{Members: passwd.Members("")})
	if err != nil {
		return err
	}
	defer root.Close()
	v := trustChecker{root: root, seen: map[string]bool{}}
	for _, env := range slices.Concat(s.States, s.Pillar) {
		for _, dir := range env.Dirs {
			if err := v.tree(dir); err != nil {
				return err
			}
		}
	}
	for _, file := range given {
		if inherited(file) {
			continue // the shell opened it
		}
		if err := v.path(file, (*walk.Root).Source); err != nil {
			return err
		}
	}
	return nil
}

// checkAWSFiles returns an error for files of AWS's configuration that a user other than root and the caller can
// change: they name programs (credential_process) that run with the caller's rights.
func checkAWSFiles() error {
	root, err := walk.Open(walk.Options{Members: passwd.Members("")})
	if err != nil {
		return err
	}
	defer root.Close()
	v := trustChecker{root: root, seen: map[string]bool{}}
	home, _ := os.UserHomeDir()
	for variable, usual := range map[string]string{"AWS_CONFIG_FILE": "config",
		"AWS_SHARED_CREDENTIALS_FILE": "credentials"} {
		file := os.Getenv(variable)
		if file == "" && home != "" {
			file = filepath.Join(home, ".aws", usual)
		}
		if file == "" || inherited(file) {
			continue
		}
		if err := v.path(file, (*walk.Root).Source); err != nil && !errors.Is(err, fs.ErrPermission) {
			return diag.Exposed.Hint(fmt.Errorf("AWS's configuration: %w", err),
				"let you and root alone change it (chmod go-w), or name another file in %s", variable)
		}
	}
	return nil
}

// inherited reports whether a path names a file descriptor that the program was started with, or a device.
func inherited(path string) bool {
	return strings.HasPrefix(filepath.Clean(path), "/dev/") || strings.HasPrefix(filepath.Clean(path), "/proc/")
}

// trustChecker checks trees, each directory once.
type trustChecker struct {
	root *walk.Root
	seen map[string]bool
}

// tree returns an error for a directory in which another user can change something. Files and directories outside, to
// which links in the directory lead, are checked too.
func (v *trustChecker) tree(dir string) error {
	if v.seen[dir] {
		return nil
	}
	v.seen[dir] = true
	if err := v.path(dir, (*walk.Root).SourceTree); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if found, err := walk.Found(err); err != nil || !found {
		return err
	}
	return filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return err
		}
		return v.path(path, (*walk.Root).Source)
	})
}

// path returns an error for a path that another user can change. A path that does not exist is judged by the directory
// in which it would be.
func (v *trustChecker) path(path string, look func(*walk.Root, string, walk.Trust) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	err = look(v.root, path, walk.Trust{})
	if walk.Nowhere(err) { // another user may make it while the tree is read
		if by, at := v.root.Changer(path, false); by != "" {
			err = &walk.UnsafeError{Path: path, By: by, Component: at}
		}
	}
	if unsafe := new(walk.UnsafeError); errors.As(err, &unsafe) {
		return diag.Exposed.Hint(fmt.Errorf("%s: refused, since %s can change %s, and it would run with "+
			"your rights",
			unsafe.Path, unsafe.By, unsafe.Component),
			"copy the tree to where you and root alone may write, as yourself (umask 022; cp -R), look at the copy, and "+
				"use that")
	}
	if walk.Nowhere(err) {
		return nil
	}
	return err
}

// ownPlace refuses a directory of reports that another user than root and the caller can replace: a link that such a
// user made, or a directory that such a user may write to. Links of the caller's own are followed. A directory that
// does not exist is judged by the one it will be in.
func ownPlace(dir string) error {
	root, err := walk.Open(walk.Options{Members: passwd.Members("")})
	if err != nil {
		return err
	}
	defer root.Close()
	err = root.Source(dir, walk.Trust{})
	for walk.Nowhere(err) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = root.Source(dir, walk.Trust{})
	}
	if unsafe := new(walk.UnsafeError); errors.As(err, &unsafe) {
		return diag.Exposed.Hint(fmt.Errorf("%s is refused: %s can change %s", unsafe.Path, unsafe.By, unsafe.Component),
			"set XDG_STATE_HOME to a directory that you and root alone can change")
	}
	return err
}
