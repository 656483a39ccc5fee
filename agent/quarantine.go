package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Unquarantine lets pairs be tried again whose service has this version; "" means all.
func (a *Agent) Unquarantine(version string) (released []ledger.Pair, err error) {
	err = a.edit("unquarantine", func(book *ledger.Ledger) error {
		known := book.Bad
		if released = book.Release(version); len(released) == 0 {
			return exit.WithCode(exit.Usage, notQuarantined(version, known))
		}
		return nil
	})
	return released, err
}

// notQuarantined is the error of whoever names what is not.
func notQuarantined(version string, known []ledger.Bad) error {
	if len(known) == 0 {
		return diag.WithHint(errors.New("nothing is quarantined"), "`corpus-agent status` would list it")
	}
	var versions []string
	for _, b := range known {
		versions = append(versions, b.Pair.Service.Version)
	}
	return diag.WithHint(fmt.Errorf("%q is not quarantined", version), "quarantined: %s", strings.Join(versions, ", "))
}
