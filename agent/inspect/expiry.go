package inspect

import (
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Expiries lists until when the signatures that this host relies on are good, and those of which less than a third of
// the lifetime is left. What cannot be read was reported by the run that needed it.
func (h *Host) Expiries(service string) (all, soon []trust.Expiry) {
	projects := []string{artifact.Base}
	if service != "" {
		projects = append(projects, service)
	}
	all, _ = trust.KeptExpiries(h.Layout.Trust(), projects...)
	return all, trust.Expiring(all, h.Time())
}
