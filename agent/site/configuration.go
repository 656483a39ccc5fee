package site

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckConfiguration returns an error if an unprivileged user controls a part of the host's configuration: that user
// could choose programs that root runs, and what root trusts. It must be called before the configuration is read, and
// reads nothing of it. The error is a diag.List with a hint for each part, and has the exit code exit.Refused.
// CheckConfiguration checks nothing if the agent does not run as root.
func CheckConfiguration(l layout.Layout) error {
	var problems diag.List
	seen := map[string]bool{}
	for _, p := range l.ConfigurationParts() {
		err := CheckSole(l, p)
		var unsafe *walk.UnsafeError
		if err != nil && !errors.As(err, &unsafe) {
			return exit.WithCode(exit.Usage, err)
		}
		if err == nil || seen[unsafe.Component] {
			continue
		}
		seen[unsafe.Component] = true
		at := l.Path(unsafe.Component)
		problems.Add(diag.Pos{File: at},
			"%s can change the configuration of an agent that runs as root: none of it is read", unsafe.By).
			WithHint(diag.Exposed, "look at what is there, then: "+cure(at, "go-w"))
	}
	return exit.WithCode(exit.Refused, problems.Err())
}

// CheckSole returns a *walk.UnsafeError if a user whom the agent does not trust controls a part of a file or directory
// on this machine: see Site.TrustedUsers. It returns nil if the file does not exist, and if the agent does not run as
// root.
func CheckSole(l layout.Layout, p string) error {
	s := &Site{Layout: l}
	users := s.TrustedUsers()
	if users == nil {
		return nil
	}
	root, err := s.OpenSafely()
	if found, err := walk.Found(err); !found {
		return err
	}
	defer root.Close()
	err = root.As(slices.Max(users)).CheckRootOnly(l.Inside(p)) // the user besides root, if there is one
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // the directories above are safe, so no other user did this; the reader of the path reports it
	}
	var unsafe *walk.UnsafeError
	if err != nil && !errors.As(err, &unsafe) {
		return fmt.Errorf("looking at who may change %s: %w", p, err)
	}
	return err
}
