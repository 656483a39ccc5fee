package rollout

import "time"

// Start is a rollout that is under way. It is signed with the channel's pointer, and so are the moves that change it:
// pause, resume, skip-wave and abort.
type Start struct {
	ID      string    `json:"id"`      // names what hosts say of it in the store
	Release string    `json:"release"` // digest of what hosts are to take
	At      time.Time `json:"at"`
	Cuts    []uint32  `json:"cuts"`  // see Plan.Cut
	Hosts   []int     `json:"hosts"` // of each wave, when it started
	Urgent  bool      `json:"urgent,omitempty"`
	Paused  bool      `json:"paused,omitempty"`
	Aborted bool      `json:"aborted,omitempty"`
	Skipped int       `json:"skipped,omitempty"` // waves that are not waited for any more
	Resumed time.Time `json:"resumed,omitzero"`  // failures and halts before do not count any more
}

// NewStart begins a rollout of a release to the hosts that are known.
func (p Plan) NewStart(id, release string, at time.Time, hosts []Host) Start {
	cuts, counts := p.Cut(release, hosts)
	return Start{ID: id, Release: release, At: at.UTC().Truncate(time.Second), Cuts: cuts, Hosts: counts}
}
