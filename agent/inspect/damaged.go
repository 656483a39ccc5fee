package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Damage is a part of the agent's records that could not be read. What depends on it is missing in a status.
type Damage struct {
	Text string `json:"text"`
	Hint string `json:"hint"` // what to do
}

func (d Damage) String() string { return d.Text + "; " + d.Hint }

// damaged adds an error of reading the agent's records to a status, whose other parts are still shown.
func (h *Host) damaged(s *Status, err error) {
	if err = h.forLook(err); err == nil {
		return
	}
	one := Damage{Text: err.Error(), Hint: diag.HintOf(err)}
	if !slices.Contains(s.Damaged, one) {
		s.Damaged = append(s.Damaged, one)
	}
}

// trusted sets whether the host has a root of trust, and adds the damage of its trust metadata.
func (h *Host) trusted(s *Status) {
	dir := h.Layout.Trust()
	var err error
	s.Bootstrapped, err = trust.Introduced(dir)
	if errors.Is(err, fs.ErrPermission) { // a trust directory of another user cannot be read, but exists
		s.Bootstrapped = true
		return
	}
	if h.damaged(s, err); err != nil {
		return // each file in the directory has the same error
	}
	found, _, err := trust.Damaged(dir)
	for _, one := range found {
		h.damaged(s, fmt.Errorf("%s %s", h.Layout.Inside(one.Path), one.Why))
	}
	if !errors.Is(err, fs.ErrPermission) {
		h.damaged(s, err)
	}
}
