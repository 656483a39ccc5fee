package ledger

import (
	"slices"
	"time"
)

// Proven says that a run asked the units and probes of a pair, and that all passed.
type Proven struct {
	Pair  Pair         `json:"pair"`
	Run   string       `json:"run"`
	At    time.Time    `json:"at"`
	Units []ProvenUnit `json:"units,omitempty"` // that ran the pair
	// OtherRoot says that the run worked below another root (--root): no unit was restarted there and no probe
	// asked, so nothing shows that the pair serves.
	OtherRoot bool `json:"other_root,omitempty"`
	// Unserved says of which units later runs found that they had ended, or ran something else, before states of those
	// runs started them again. Only a run that asks units and probes ends that.
	Unserved []string `json:"unserved,omitempty"`
}

// ProvenUnit is a unit that ran a release when its health was asked.
type ProvenUnit struct {
	Unit     string `json:"unit"`
	Restarts int    `json:"restarts,omitempty"` // how often the init system had restarted it until then
}

// Has reports whether a unit is among those that ran the pair.
func (p *Proven) Has(unit string) bool {
	return slices.ContainsFunc(p.Units, func(u ProvenUnit) bool { return u.Unit == unit })
}

// Proves reports whether the entry is about a pair; nil is about none.
func (p *Proven) Proves(pair *Pair) bool { return p != nil && pair != nil && p.Pair.Same(*pair) }
