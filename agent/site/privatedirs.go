package site

import (
	"fmt"
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

// Error names the parts.
func (e *sharedPillar) Error() string {
	var parts []string
	for _, part := range e.parts {
		parts = append(parts, fmt.Sprintf("%s can be changed by %s", e.layout.Path(part.Component), part.By))
	}
	return fmt.Sprintf("the pillar of %s is not rendered, since root does what it says: %s", e.project,
		strings.Join(parts, "; "))
}

// Hint says what an operator does about it.
func (e *sharedPillar) Hint() string {
	var commands []string
	for _, part := range e.parts {
		commands = append(commands, cure(e.layout.Path(part.Component), "go-w"))
	}
	return "read what it says now, which another user may have written; if it is right: " + strings.Join(commands, "; ")
}

// CheckState refuses what the agent remembers where another user can change a part of it, or could have written one:
// the root of trust and the ledger decide what root runs.
func (s *Site) CheckState() error {
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	state := s.Layout.State()
	parts, err := root.Shared(s.Layout.Inside(state), mostParts)
	if len(parts) == 0 {
		if walk.Nowhere(err) {
			return nil
		}
		return err
	}
	var named []string
	for _, part := range parts {
		named = append(named, fmt.Sprintf("%s can be changed by %s", s.Layout.Path(part.Component), part.By))
	}
	return exit.WithCode(exit.Refused,
		diag.WithHint(fmt.Errorf("what the agent keeps in %s decides what root runs: %s", state, strings.Join(named, "; ")),
			"find out why; if you trust what is there: cp -dR %[1]s %[1]s.new && chmod -R go-w %[1]s.new && mv %[1]s "+
				"%[1]s.old && mv %[1]s.new %[1]s; if not, remove it and deploy with --trust-root", state))
}

// mostParts is how many parts of a pillar an error names.
const mostParts = 5

// CheckPillar refuses the pillar that this host alone has of a project where another user can change a part of it, or
// could have written one: the run cannot know what such a file said before.
//
// What is in the place of the pillar's directory is refused, too: states that run without their pillar may do harm.
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
		return exit.WithCode(exit.Refused, diag.WithHint(&PillarRefused{project, shared}, "%s", shared.Hint()))
	}
	if err == nil || walk.Nowhere(err) {
		return nil // no other user made it so, since the way is safe; what reads it reports it
	}
	return fmt.Errorf("looking at who may change the pillar of %s: %w", project, err)
}

// PillarRefused is why the pillar that this host alone has of a project is not rendered.
type PillarRefused struct {
	Project string
	err     error
}

// Error is the reason.
func (e *PillarRefused) Error() string { return e.err.Error() }

// Unwrap is the reason.
func (e *PillarRefused) Unwrap() error { return e.err }

// misplacedPillar refuses what is in the place of the directory of a project's pillar.
func (s *Site) misplacedPillar(project string) error {
	at := s.LayoutOf(project).Pillar()
	if walk.Misplaced(at) {
		return exit.WithCode(exit.Usage, diag.WithHint(
			&PillarRefused{project, fmt.Errorf("the pillar of %s is not rendered: %s is not a directory", project, at)},
			"move it away, and bring the directory back from a backup: mv -T %[1]s %[1]s.damaged; where this host had no "+
				"pillar of its own for %s, that is all", at, project))
	}
	return nil
}
