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

// CheckConfiguration refuses a host's configuration of which an unprivileged user controls a part: who writes it
// chooses programs that root runs, and what it trusts. It has to come before the first look at that configuration, of
// which it reads nothing. The error is a diag.List with a hint for each part, and has the exit code exit.Refused. An
// agent that does not run as root reads it as it is.
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
			WithHint("look at what is there, then: " + cure(at, "go-w"))
	}
	return exit.WithCode(exit.Refused, problems.Err())
}

// CheckSole refuses, with a *walk.UnsafeError, a file or directory on this machine of which a user controls a part whom
// the agent does not trust: see Site.TrustedUsers. What does not exist is fine, and so is everything where the agent
// does not run as root.
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
	err = root.As(slices.Max(users)).Sole(l.Inside(p)) // the one beside root, if there is one
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // no user made it so, since the way is safe; what reads the path reports it
	}
	var unsafe *walk.UnsafeError
	if err != nil && !errors.As(err, &unsafe) {
		return fmt.Errorf("looking at who may change %s: %w", p, err)
	}
	return err
}
