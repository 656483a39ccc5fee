package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Proven records that a run checked the units and probes of a pair, and that all passed.
type Proven struct {
	Pair  Pair         `json:"pair"`
	Run   string       `json:"run"`
	At    time.Time    `json:"at"`
	Units []ProvenUnit `json:"units,omitempty"` // units that ran the pair
	// OtherRoot is true if the run worked below another root (--root): no unit was restarted there and no probe ran, so
	// nothing proves that the pair serves.
	OtherRoot bool `json:"other_root,omitempty"`
	// Unserved has a text for each unit that later runs found ended, or running something else, before their states
	// started it again. A text stays until a run checks units and probes, or until the program that the states
	// started has ended. Each text begins with the name of its unit.
	Unserved []string `json:"unserved,omitempty"`
	// Again has the start times of the programs that states have started again, by unit. A unit of Unserved that is
	// missing here was written by an older agent, or its init system does not have that time.
	Again map[string]time.Time `json:"again,omitempty"`
}

// ProvenUnit is a unit that ran a release when its health was checked.
type ProvenUnit struct {
	Unit     string `json:"unit"`
	Restarts int    `json:"restarts,omitempty"` // number of restarts by the init system until then
}

// Has reports whether a unit is one of those that ran the pair.
func (p *Proven) Has(unit string) bool {
	return slices.ContainsFunc(p.Units, func(u ProvenUnit) bool { return u.Unit == unit })
}

// StartedAgain records that states have started a unit again, and when its program started; zero if unknown. The text
// replaces an earlier one about the unit.
func (p *Proven) StartedAgain(unit string, at time.Time, text string) {
	p.Keep(func(known string, _ time.Time) bool { return known != unit })
	p.Unserved = append(p.Unserved, text)
	if !at.IsZero() {
		if p.Again == nil {
			p.Again = map[string]time.Time{}
		}
		p.Again[unit] = at.UTC()
	}
}

// Keep removes the units of Unserved for which holds is false, and reports whether there were any. holds gets the time
// at which the program of a unit started, zero if it is unknown.
func (p *Proven) Keep(holds func(unit string, at time.Time) bool) (removed bool) {
	p.Unserved = structsort.Without(p.Unserved, func(text string) bool {
		unit, _, _ := strings.Cut(text, " ")
		if holds(unit, p.Again[unit]) {
			return false
		}
		delete(p.Again, unit)
		removed = true
		return true
	})
	return removed
}

// Proves reports whether the entry is about a pair. It returns false if either is nil.
func (p *Proven) Proves(pair *Pair) bool { return p != nil && pair != nil && p.Pair.Same(*pair) }
