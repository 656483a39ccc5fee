package inspect

import (
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Expiries returns the expiry times of the signatures that this host relies on, and those of which less than a third of
// the lifetime is left. It ignores files that cannot be read, which the run that needed them reported.
func (h *Host) Expiries(service string) (all, soon []trust.Expiry) {
	projects := []string{artifact.Base}
	if service != "" {
		projects = append(projects, service)
	}
	all, _ = trust.KeptExpiries(h.Layout.Trust(), projects...)
	return all, trust.Expiring(all, h.Time())
}
