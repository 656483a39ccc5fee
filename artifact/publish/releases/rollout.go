package releases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// begin returns the rollout with which a channel moves to a release: a new one if the channel has a plan, and the
// current one if the channel already names the release.
func begin(ctx context.Context, n *publish.Next, ref artifact.Ref, r artifact.Release, before trust.Pointer,
	by origin) (*rollout.Start, error) {
	p := n.Publisher
	p.Continued = nil
	same := before.Version == r.Version && before.Digest == r.Digest
	if same {
		again, err := mustRestart(ctx, n, ref, r, before)
		if err != nil {
			return nil, err
		}
		if !again {
			p.Continued = hurried(n, ref, before.Rollout)
			return p.Continued, nil
		}
	}
	b, err := beginning(ctx, n, ref, r, before)
	if err != nil || b == nil {
		return nil, err
	}
	if p.Start == nil {
		return nil, fmt.Errorf("%s has a rollout plan, and this program cannot start a rollout", ref)
	}
	start, keep, err := p.Start(ctx, *b)
	if err != nil || start == nil {
		return nil, err
	}
	n.Ahead = append(n.Ahead, keep)
	begun := *start
	begun.Left = before.Rollout.LeftBy(begun)
	begun.Back = by.what == "back" || same && before.Rollout != nil && before.Rollout.Back
	begun.Earlier = before.Rollout.EarlierOf(begun)
	begun.Stops = before.Rollout.StopsOf(begun.Stops)
	begun.Note(moved(n, ref.Project, "start"))
	return &begun, begun.Check()
}

// beginning describes a move of a channel to a release, for Publisher.Start. It returns nil if the channel has no plan.
func beginning(ctx context.Context, n *publish.Next, ref artifact.Ref, r artifact.Release,
	before trust.Pointer) (*publish.Beginning, error) {
	plan, err := n.Client.Rollout(ref)
	if err != nil || plan == nil {
		return nil, err
	}
	role, err := n.Project(ctx, ref.Project)
	if err != nil {
		return nil, err
	}
	b := publish.Beginning{Ref: ref, Plan: *plan, Release: r, Earlier: before.Rollout, Urgent: n.Publisher.Urgent,
		Now: n.Client.StoreTime()}
	for _, other := range trust.Releases(ref.Project, role) {
		if other.Digest == r.Digest && other.Version != r.Version {
			b.Same = append(b.Same, other.Version)
		}
	}
	if before.Version != "" {
		b.Before = &rollout.Before{Version: before.Version, Digest: before.Digest}
	}
	return &b, nil
}

// mustRestart reports whether the rollout of the release that a channel names has to start again, since the store has
// lost its roster or hosts of it have other keys.
func mustRestart(ctx context.Context, n *publish.Next, ref artifact.Ref, r artifact.Release,
	before trust.Pointer) (bool, error) {
	lost, err := rosterLost(ctx, n, ref, before.Rollout)
	p := n.Publisher
	if err != nil || lost || p.Stale == nil || before.Rollout == nil || before.Rollout.Aborted {
		return lost, err
	}
	b, err := beginning(ctx, n, ref, r, before)
	if err != nil || b == nil {
		return false, err
	}
	return p.Stale(ctx, *b)
}

// rosterLost reports whether the store has lost the roster of a rollout that is under way, without which no more hosts
// take the release.
func rosterLost(ctx context.Context, n *publish.Next, ref artifact.Ref, start *rollout.Start) (bool, error) {
	if start == nil || start.Aborted || n.Publisher.Start == nil {
		return false, nil
	}
	body, _, err := n.Publisher.Store.Get(ctx, rollout.RosterKey(ref, start.ID), 0)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, nil
	case errors.Is(err, store.ErrForbidden):
		return false, nil // this publisher may not read rollouts, and starts none
	case err != nil:
		return false, fmt.Errorf("reading the roster of the rollout: %w", err)
	}
	return false, body.Close()
}

// hurried is a rollout that continues, without waves from now on where the publisher is in a hurry.
func hurried(n *publish.Next, ref artifact.Ref, start *rollout.Start) *rollout.Start {
	if start == nil || start.Urgent || start.Aborted || !n.Publisher.Urgent {
		return start
	}
	next := *start
	next.Urgent = true
	next.Note(moved(n, ref.Project, "urgent"))
	return &next
}

// moved returns a move that a user makes in a rollout now, with the available keys that may sign the project.
func moved(n *publish.Next, project, what string) rollout.Move {
	m := rollout.Move{What: what, At: n.Publisher.Time().UTC().Truncate(time.Second), Who: n.Publisher.Who}
	keys, _, err := n.Publisher.AtHand(project, n.Client.Delegation(project))
	if err != nil {
		return m // signing reports the error
	}
	for _, k := range keys {
		m.By = append(m.By, k.ID)
	}
	return m
}

// Steered is a channel after a move of its rollout.
type Steered struct {
	Ref     artifact.Ref   `json:"ref"`
	Move    string         `json:"move"`
	Version string         `json:"version"` // that the channel names now
	Start   *rollout.Start `json:"rollout"`
}

// Steer changes the current rollout of a channel: it calls change with its start, and signs the changed start with the
// channel's pointer.
func Steer(ctx context.Context, p *publish.Publisher, ref artifact.Ref, what string,
	change func(*rollout.Start) error) (Steered, error) {
	return steer(ctx, p, ref, what, func(_ *publish.Next, _ *trust.Role, pointer *trust.Pointer) error {
		return change(pointer.Rollout)
	})
}

// Abort ends a rollout: the channel names its previous release again, and hosts that have taken the new release return
// to it.
func Abort(ctx context.Context, p *publish.Publisher, ref artifact.Ref) (Steered, error) {
	return steer(ctx, p, ref, "abort", func(n *publish.Next, role *trust.Role, pointer *trust.Pointer) error {
		before := pointer.Rollout.Before
		if before == nil {
			return publish.NewMistake(diag.Rollout, fmt.Sprintf("`corpus rollout pause %s %s` keeps it from more hosts, and "+
				"`corpus point %s %s --remove` removes the channel", ref.Project, ref.Channel, ref.Project, ref.Channel),
				"no release is known to have arrived on %s before its rollout, so there is nothing to go back to", ref)
		}
		pointer.Rollout.Aborted = true
		move := moved(n, ref.Project, "abort")
		pointer.Moved = &move
		release, err := signed(role, ref, before)
		if err != nil {
			return err
		}
		last := *pointer
		pointer.Version, pointer.Digest = release.Version, release.Digest
		pointer.Proof, err = proofs.Prove(ctx, n, ref, *pointer, last, "")
		return diag.Rollout.Hint(err, "stop it first with `corpus rollout pause %s %s`; a channel that requires proof "+
			"takes it for the release before as well: `corpus attest %s FROM %s`", ref.Project, ref.Channel, ref.Project,
			before.Version)
	})
}

// signed returns the previous release of a channel, which must still be signed and not withdrawn.
func signed(role *trust.Role, ref artifact.Ref, before *rollout.Before) (artifact.Release, error) {
	yanks, err := trust.Yanks(role)
	if err != nil {
		return artifact.Release{}, err
	}
	for _, r := range trust.Releases(ref.Project, role) {
		if r.Version != before.Version || r.Digest != before.Digest {
			continue
		}
		if yank, withdrawn := yanks[r.Version]; withdrawn {
			return r, diag.Withdrawn.Hint(&trust.Withdrawn{Release: r, Yank: yank},
				"stop it meanwhile with `corpus rollout pause %s %s`, and point the channel at another version: `corpus point "+
					"%s %s VERSION --urgent`", ref.Project, ref.Channel, ref.Project, ref.Channel)
		}
		return r, nil
	}
	return artifact.Release{},
		publish.NewMistake(diag.Unpublished, "`corpus ls` shows the versions there are; point the channel at one of them",
			"the project no longer signs %s, which %s named before", before.Version, ref)
}

// steer signs a move of a channel that has a rollout.
func steer(ctx context.Context, p *publish.Publisher, ref artifact.Ref, what string,
	change func(*publish.Next, *trust.Role, *trust.Pointer) error) (Steered, error) {
	result := Steered{Ref: ref, Move: what}
	if err := publish.CheckRef(ref); err != nil {
		return result, err
	}
	of := "" // ID of the rollout, also when the change is repeated because another publisher was faster
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		role, channels, err := channelsWith(ctx, n, ref)
		if err != nil {
			return err
		}
		pointer := channels[ref.Channel]
		if pointer.Rollout == nil {
			return publish.NewMistake(diag.Rollout, "`corpus project rollout` gives a channel a plan, and its next promotion "+
				"starts a rollout",
				"%s has no rollout", ref)
		}
		if pointer.Rollout.Aborted {
			return publish.NewMistake(diag.Rollout, "promote or point the channel to start another one",
				"the rollout of %s was aborted", ref)
		}
		start := *pointer.Rollout
		if of != "" && of != start.ID {
			return overtaken(ref, what)
		}
		of = start.ID
		pointer.Rollout, pointer.Serial = &start, pointer.Serial+1
		skipped := start.Skipped
		if err := change(n, role, &pointer); err != nil {
			return err
		}
		move := moved(n, ref.Project, what)
		if start.Skipped > skipped {
			move.Wave = start.Skipped + 1
		}
		start.Note(move)
		result.Start, result.Version = &start, pointer.Version
		channels[ref.Channel] = pointer
		return trust.SetChannels(role, channels)
	})
	return result, err
}

// Pause stops a rollout until it is resumed: no host takes the release in the meantime.
func Pause(ctx context.Context, p *publish.Publisher, ref artifact.Ref) (Steered, error) {
	return Steer(ctx, p, ref, "pause", func(s *rollout.Start) error {
		if s.Paused {
			return publish.NewMistake(diag.Rollout, "`corpus rollout resume` lets it continue",
				"the rollout of %s is paused", ref)
		}
		s.Paused = true
		return nil
	})
}

// Resume continues a rollout that was paused or has stopped. Failures and halts up to forget no longer count; if it is
// zero, all continue to count.
func Resume(ctx context.Context, p *publish.Publisher, ref artifact.Ref, forget time.Time) (Steered, error) {
	return Steer(ctx, p, ref, "resume", func(s *rollout.Start) error {
		if !s.Paused && forget.IsZero() {
			return publish.NewMistake(diag.Rollout, "`corpus rollout status` shows what it waits for",
				"the rollout of %s is neither paused nor stopped", ref)
		}
		s.Paused = false
		if !forget.IsZero() {
			at := forget.UTC().Truncate(time.Second)
			if !at.After(s.Resumed) { // the store's clock has gone back
				at = s.Resumed.Add(time.Second)
			}
			s.Resumed = at
		}
		return nil
	})
}

// SkipWaves makes a rollout no longer wait for its first waves.
func SkipWaves(ctx context.Context, p *publish.Publisher, ref artifact.Ref, waves int) (Steered, error) {
	return Steer(ctx, p, ref, "skip-wave", func(s *rollout.Start) error {
		s.Skipped = max(s.Skipped, waves)
		return nil
	})
}
