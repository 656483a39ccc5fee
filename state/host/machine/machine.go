// Package machine opens a Host with all its parts: files, accounts, packages and units.
//
// A write, or a command that may write anything, invalidates the caches of all parts.
package machine

import (
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/accounts"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// New opens a host with its accounts, packages and units.
func New(o host.Options) (*host.Host, error) {
	r := &caches{}
	h, err := host.Open(o, host.Caches{Changed: r.changed, Forget: r.forget})
	if err != nil {
		return nil, err
	}
	r.accounts, r.packages, r.units = accounts.New(h, o), packages.New(h, o), units.New(h, o)
	h.Accounts, h.Packages, h.Units = r.accounts, r.packages, r.units
	h.Crontabs = accounts.NewCrontabs(h, o)
	if err := h.MachineErrorSince(0); err != nil { // the parts may have wrong data
		return nil, err
	}
	return h, nil
}

// caches holds the caches of accounts, packages and units, which are dropped when a file or a command changes their
// sources.
type caches struct {
	accounts *accounts.Accounts
	packages *packages.Packages
	units    *units.Units
}

func (r *caches) changed(path string) {
	r.accounts.Changed(path)
	r.packages.Changed(path)
	r.units.Changed(path)
}

func (r *caches) forget() {
	r.accounts.Forget()
	r.packages.Forget()
	r.units.Forget()
}
