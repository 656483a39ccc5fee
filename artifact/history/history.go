// Package history reads how the channels of a project moved: which releases each of them has named, since when, and who
// moved it, including the moves of its rollouts.
//
// The newest metadata of a project has the last move of each channel and the moves of its rollout. Earlier moves are in
// the metadata that it replaced, which stays in the store until corpus gc removes it. A move counts as verified if the
// metadata with it is signed with keys that may sign the project now.
//
// The store also keeps metadata of publishers that lost a race, which never took effect. Metadata says which version it
// replaces, so that only versions that a snapshot has named are read. Metadata of older programs does not, and there
// every version counts.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Moves that no metadata names: those of channels that older programs pointed, and of channels that are gone.
const (
	Moved   = "moved"
	Removed = "remove"
)

// Move is a move of a channel or of its rollout.
type Move struct {
	Ref artifact.Ref `json:"ref"`
	rollout.Move
	Version  string `json:"version,omitempty"` // of the release that the move is about; empty if it is no longer signed
	Digest   string `json:"digest,omitempty"`  // of that release, shortened
	Points   bool   `json:"points"`            // the channel came to name that release
	Verified bool   `json:"verified"`          // signed with keys that may sign the project now

	rollout string // ID of the rollout of the channel after the move; empty if it had none
}

// mayBe reports whether two moves may be the same one, as different versions of the metadata have it.
func (m Move) mayBe(other Move) bool {
	return m.Ref == other.Ref && m.Move.Is(other.Move) && m.Digest == other.Digest && m.rollout == other.rollout
}

const (
	// mostHeads is the maximum number of earlier versions of a project's metadata that are read.
	mostHeads = 30
	// largestHead is the maximum size, in bytes, of one of them.
	largestHead = 4 << 20
)

// Read returns the moves of a project's channels, the newest first: in the order of the versions of the metadata, which
// each name the one that they replace, whatever the clocks of the people said who made them. The client has verified
// the listing.
func Read(ctx context.Context, s store.Store, client *trust.Client, l trust.Listing) ([]Move, error) {
	h := reading{project: l.Project, versions: map[string]string{}, named: map[string]trust.Pointer{},
		sure: map[string]trust.Pointer{}, brought: map[string]string{}}
	for _, r := range l.Releases {
		h.versions[string(r.Digest)] = r.Version
	}
	heads, err := h.heads(ctx, s, client, l)
	if err != nil {
		return nil, err
	}
	for _, head := range slices.Backward(heads) {
		h.add(head)
	}
	slices.Reverse(h.moves)
	return h.moves, nil
}

// head has the channels in a version of a project's metadata.
type head struct {
	channels map[string]trust.Pointer
	at       time.Time // when the store received it
	verified bool
	before   int64 // version that it replaces
}

// reading collects the moves of a project from successive versions of its metadata.
type reading struct {
	project  string
	versions map[string]string        // by digest
	named    map[string]trust.Pointer // by channel, in the last version that was read
	sure     map[string]trust.Pointer // by channel, in the last verified version that was read
	brought  map[string]string        // versions that rollouts brought, by the ID of the rollout
	moves    []Move
}

// heads returns the newest version of a project's metadata and those that it replaced, the newest first.
func (h *reading) heads(ctx context.Context, s store.Store, client *trust.Client, l trust.Listing) (all []head,
	err error) {
	serial := l.Serial
	for range mostHeads + 1 {
		if serial <= 0 {
			break
		}
		found, err := h.earlier(ctx, s, client, serial)
		if err != nil {
			return nil, err
		}
		if serial == l.Serial { // the client has verified it
			newest := head{channels: l.Channels, verified: true, before: serial - 1}
			if found != nil {
				newest.at, newest.before = found.at, found.before
			}
			found = &newest
		}
		if serial--; found != nil {
			all, serial = append(all, *found), found.before
		}
	}
	return all, nil
}

// earlier reads a version of the metadata. It returns nil if the store no longer has it, or has another file
// in its place.
func (h *reading) earlier(ctx context.Context, s store.Store, client *trust.Client, serial int64) (*head, error) {
	key := trust.RoleKey(trust.HeadRole(h.project), serial)
	data, info, err := store.ReadUpTo(ctx, s, key, largestHead)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of %s: %w", h.project, err)
	}
	role := &trust.Role{}
	if json.Unmarshal(data, role) != nil || role.Signed.Version != serial {
		return nil, nil //nolint:nilerr // an older head that is damaged is not a head
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	found := head{channels, info.Modified.UTC(), client.SignsProject(h.project, role), serial - 1}
	if before, ok := trust.Follows(role); ok && found.verified {
		found.before = before
	}
	return &found, nil
}

// add adds the moves of a version of the metadata that earlier versions did not have.
func (h *reading) add(now head) {
	had := len(h.moves)
	for _, name := range slices.Sorted(maps.Keys(h.named)) {
		if _, there := now.channels[name]; !there {
			h.append(Move{Ref: h.ref(name), Move: rollout.Move{What: Removed, At: now.at}, Verified: now.verified})
			delete(h.named, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.channels)) {
		p := now.channels[name]
		h.pointer(name, p, now)
		h.named[name] = p
	}
	if now.verified {
		h.sure = maps.Clone(now.channels)
	}
	h.moves = append(h.moves[:had], merged(h.moves[had:])...)
}

// merged sorts the moves that one version of the metadata added. Those of one channel stay in their order, and between
// channels only the times say which came first.
func merged(moves []Move) (all []Move) {
	byChannel := map[string][]Move{}
	for _, m := range moves {
		byChannel[m.Ref.Channel] = append(byChannel[m.Ref.Channel], m)
	}
	for range moves {
		first := slices.MinFunc(slices.Sorted(maps.Keys(byChannel)), func(a, b string) int {
			return byChannel[a][0].At.Compare(byChannel[b][0].At)
		})
		all = append(all, byChannel[first][0])
		if byChannel[first] = byChannel[first][1:]; len(byChannel[first]) == 0 {
			delete(byChannel, first)
		}
	}
	return all
}

// before returns what a channel named before a version of the metadata: in the verified one before it if this one is
// verified, so that what other users wrote between them counts for nothing. sure reports whether that is verified.
func (h *reading) before(name string, now head) (p trust.Pointer, there, sure bool) {
	if p, there = h.sure[name]; there && now.verified {
		return p, true, true
	}
	p, there = h.named[name]
	return p, there, false
}

func (h *reading) ref(channel string) artifact.Ref {
	return artifact.Ref{Project: h.project, Channel: channel}
}

// pointer adds the move after which a channel names this release, and the moves of its rollout: those before it, if it
// is one of them, as an abort is, and the others after it.
func (h *reading) pointer(name string, p trust.Pointer, now head) {
	at := 0
	if p.Rollout != nil {
		if string(p.Digest) == p.Rollout.Release {
			h.brought[p.Rollout.ID] = p.Version
		}
		at = max(0, slices.IndexFunc(p.Rollout.Moves, func(m rollout.Move) bool { return p.Moved != nil && m.Is(*p.Moved) }))
		h.steered(name, p, now, 0, at)
	}
	h.pointed(name, p, now)
	if p.Rollout != nil {
		h.steered(name, p, now, at, len(p.Rollout.Moves))
	}
}

// pointed adds the move after which a channel names this release.
func (h *reading) pointed(name string, p trust.Pointer, now head) {
	before, there, sure := h.before(name, now)
	points := Move{Ref: h.ref(name), Version: p.Version, Digest: p.Digest.Short(), Points: true, Verified: now.verified}
	if p.Rollout != nil {
		points.rollout = p.Rollout.ID
	}
	switch both := there && p.Moved != nil && before.Moved != nil; {
	case both && carries(p, before):
		points.Move = *p.Moved
		h.again(points)
	case both && sure && repeats(p, before):
		// nothing changed but the time of the move
	case p.Moved != nil:
		points.Move = *p.Moved
		h.append(points)
	case !there || before.Digest != p.Digest:
		points.Move = rollout.Move{What: Moved, At: now.at}
		h.append(points)
	}
}

// steered adds some of the moves of a channel's rollout: from one index to another.
func (h *reading) steered(name string, p trust.Pointer, now head, from, to int) {
	digest := artifact.Digest(p.Rollout.Release)
	version := cmp.Or(h.brought[p.Rollout.ID], h.versions[string(digest)])
	for i, m := range p.Rollout.Moves[:to] {
		if i < from || p.Moved != nil && (m.What == "start" || m.Is(*p.Moved)) {
			continue // the move of the channel is added by itself
		}
		h.note(Move{Ref: h.ref(name), Move: m, Digest: digest.Short(), Verified: now.verified, rollout: p.Rollout.ID,
			Version: version}, equalTo(m, p.Rollout.Moves[:i]))
	}
}

// carries reports whether a pointer has the move of the one before it: only its rollout has changed since. A move
// of the same second to the same release is another one if it started or aborted a rollout.
func carries(p, before trust.Pointer) bool {
	same := p.Moved.Is(*before.Moved) && p.Version == before.Version && p.Digest == before.Digest
	if p.Rollout == nil || before.Rollout == nil {
		return same
	}
	return same && p.Rollout.ID == before.Rollout.ID && p.Rollout.Aborted == before.Rollout.Aborted
}

// repeats reports whether a pointer says what the one before it says: a person pointed the channel again at the release
// that it named, with the same proof, in the same rollout.
func repeats(p, before trust.Pointer) bool {
	if p.Version != before.Version || p.Digest != before.Digest || (p.Rollout == nil) != (before.Rollout == nil) {
		return false
	}
	return reflect.DeepEqual(p.Proof, before.Proof) && (p.Rollout == nil || p.Rollout.ID == before.Rollout.ID &&
		p.Rollout.Aborted == before.Rollout.Aborted)
}

// equalTo returns how many of these moves are equal to a move: those of one second may be, such as pause, resume and
// pause.
func equalTo(m rollout.Move, moves []rollout.Move) (n int) {
	for _, other := range moves {
		if other.Is(m) {
			n++
		}
	}
	return n
}

// note adds a move unless it was added before, after as many equal ones. A move is verified if any verified metadata
// has it.
func (h *reading) note(m Move, equal int) {
	for i := range h.moves {
		had := &h.moves[i]
		if !had.mayBe(m) {
			continue
		}
		if equal == 0 {
			had.Verified = had.Verified || m.Verified
			return
		}
		equal--
	}
	h.moves = append(h.moves, m)
}

// append adds a move of a channel, which may be equal to an earlier one of the same second. If metadata that is not
// verified had the move before, that one is verified.
func (h *reading) append(m Move) {
	same := func(had Move) bool { return !had.Verified && had.mayBe(m) }
	if i := slices.IndexFunc(h.moves, same); i >= 0 && m.Verified {
		h.moves[i].Verified = true
		return
	}
	h.moves = append(h.moves, m)
}

// again is called for a move of a channel that metadata has again. It is verified if any verified metadata has it.
func (h *reading) again(m Move) {
	for i := range slices.Backward(h.moves) {
		had := &h.moves[i]
		if had.Ref == m.Ref && had.Points && had.Digest == m.Digest && had.Move.Is(m.Move) {
			had.Verified = had.Verified || m.Verified
			return
		}
	}
}
