package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// sharedPillar is a pillar of which another user can change, or could have changed, a part.
type sharedPillar struct {
	layout  layout.Layout
	project string
	parts   []*walk.UnsafeError
}

// Error lists the parts.
func (e *sharedPillar) Error() string {
	var parts []string
	for _, part := range e.parts {
		parts = append(parts, fmt.Sprintf("%s can be changed by %s", e.layout.Path(part.Component), part.By))
	}
	return fmt.Sprintf("the pillar of %s is not rendered, since root does what it says: %s", e.project,
		strings.Join(parts, "; "))
}

// Hint returns what an operator can do about it.
func (e *sharedPillar) Hint() string {
	var commands []string
	for _, part := range e.parts {
		commands = append(commands, cure(e.layout.Path(part.Component), "go-w"))
	}
	return diag.Exposed.Coded("read what it says now, which another user may have written; if it is right: " +
		strings.Join(commands, "; "))
}

// CheckState returns an error if another user can change a part of the agent's state directory, or could have written
// one: the root of trust and the ledger decide what root runs. It ignores the parts for which corrected returns true.
func (s *Site) CheckState(corrected func(path string) bool) error {
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	state := s.Layout.State()
	parts, err := root.Shared(s.Layout.Inside(state), 10*mostParts)
	parts = slices.DeleteFunc(parts, func(part *walk.UnsafeError) bool { return corrected(part.Component) })
	if len(parts) == 0 {
		if walk.Nowhere(err) {
			return nil
		}
		return err
	}
	var named []string
	for _, part := range parts[:min(len(parts), mostParts)] {
		named = append(named, fmt.Sprintf("%s can be changed by %s", s.Layout.Path(part.Component), part.By))
	}
	return exit.WithCode(exit.Refused,
		diag.Exposed.Hint(fmt.Errorf("what the agent keeps in %s decides what root runs: %s", state,
			strings.Join(named, "; ")), "find out why; if you trust what is there: cp -dR %[1]s %[1]s.new && "+
			"chmod -R go-w %[1]s.new && mv %[1]s %[1]s.old && mv %[1]s.new %[1]s; if not, remove it and "+
			"deploy with --trust-root", state))
}

// mostParts bounds how many parts of a pillar an error lists.
const mostParts = 5

// CheckPillar returns an error if another user can change a part of a project's own pillar on this host, or could have
// written one: the run cannot know what such a file said before.
//
// It also returns an error if the pillar's path is not a directory: states that run without their pillar may do harm.
func (s *Site) CheckPillar(project string) error {
	if project == "" {
		return nil
	}
	if err := s.misplacedPillar(project); err != nil {
		return err
	}
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	parts, err := root.Shared(s.Layout.Inside(s.LayoutOf(project).Pillar()), mostParts)
	if len(parts) > 0 {
		shared := &sharedPillar{layout: s.Layout, project: project, parts: parts}
		return exit.WithCode(exit.Refused, diag.Exposed.Hint(&PillarRefused{project, shared}, "%s", shared.Hint()))
	}
	if err == nil || walk.Nowhere(err) {
		return nil // the directories above are safe, so no other user did this; the reader reports it
	}
	return fmt.Errorf("looking at who may change the pillar of %s: %w", project, err)
}

// PillarRefused is the error of a pillar that is not rendered, of those that this host alone has of a project.
type PillarRefused struct {
	Project string
	err     error
}

// Error returns the reason.
func (e *PillarRefused) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *PillarRefused) Unwrap() error { return e.err }

// misplacedPillar returns an error if the path of a project's pillar is not a directory.
func (s *Site) misplacedPillar(project string) error {
	at := s.LayoutOf(project).Pillar()
	if walk.Misplaced(at) {
		return exit.WithCode(exit.Usage, diag.ConfigLost.Hint(
			&PillarRefused{project, fmt.Errorf("the pillar of %s is not rendered: %s is not a directory", project, at)},
			"move it away, and bring the directory back from a backup: mv -T %[1]s %[1]s.damaged; where this host had no "+
				"pillar of its own for %s, that is all", at, project))
	}
	return nil
}
