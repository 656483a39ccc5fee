package records

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckControl returns the errors with which runs refuse this host, since another user can change what root reads or
// runs: the configuration, the directories above the agent's own, programs, and the state directory. It changes
// nothing.
func (rs *Records) CheckControl() (refused []error) {
	seen := map[string]bool{}
	add := func(err error) {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			refused = append(refused, err)
		}
	}
	parts := diag.List{}
	if errors.As(rs.ConfigRefused, &parts) {
		for _, part := range parts {
			add(part)
		}
	} else {
		add(rs.ConfigRefused)
	}
	for _, err := range rs.checkDirectories() {
		add(err)
	}
	add(rs.CheckPrograms())
	return refused
}

// CheckRecords returns the error with which runs refuse this host, since another user can change what the agent keeps
// there. It changes nothing. Dry runs and calls check this before they read the ledger, which decides what they render.
func (rs *Records) CheckRecords() error { return errors.Join(rs.checkDirectories()...) }

// checkDirectories checks the directories above the agent's own, and the state directory.
func (rs *Records) checkDirectories() []error {
	above := rs.CheckAbove(rs.Layout.State())
	refused := []error{above, rs.CheckAbove(rs.Layout.Projects())}
	if above == nil {
		refused = append(refused, rs.checkState())
	}
	return refused
}

// checkState returns the error with which closeState refuses the state directory. It changes nothing.
func (rs *Records) checkState() error {
	trusted := rs.TrustedUsers()
	if trusted == nil {
		return nil
	}
	root, err := rs.OpenSafely()
	if err != nil {
		return nil // a run creates it
	}
	defer root.Close()
	state := rs.Layout.Inside(rs.Layout.State())
	dir, err := root.OpenDir(state)
	if err != nil {
		return nil // it is created, or set aside, when it is needed
	}
	defer dir.Close()
	st, err := dir.Lstat(".")
	if err != nil {
		return err
	}
	if err := checkOwner(state, st.Uid, trusted); err != nil {
		return err
	}
	return rs.CheckState(func(part string) bool { return closes(dir, state, part, trusted) })
}

// closes reports whether a part of the state directory is a directory that runs make accessible to root only before
// they check what is in it: see closeDir.
func closes(dir *walk.Dir, state, part string, trusted []uint32) bool {
	name := path.Base(part)
	switch {
	case part == state:
		name = "."
	case path.Dir(part) != state:
		return false
	}
	st, err := dir.Lstat(name)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o077 != 0 &&
		checkOwner(part, st.Uid, trusted) == nil
}
