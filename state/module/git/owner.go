package git

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// actFor determines the user as whom git runs. The configuration of a clone names programs that git runs
// (hooks, filters, a file system monitor, an ssh command). git therefore runs as the owner of the clone, or of
// the directory in which it is created, and never as root for another user. It is an error if other users can
// change what git reads or runs in a clone.
func (a *access) actFor(h *host.Host, dir string) error {
	owner, err := h.OwnerOf(dir)
	if err != nil {
		return err
	}
	switch {
	case owner == "" && a.User != "", owner == a.User:
		return a.sole(h, dir)
	case a.User != "":
		return diag.Exposed.Hint(fmt.Errorf("%s belongs to %s, and git is to run as %s there: a clone names programs "+
			"that git runs", dir, owner, a.User),
			"set user: %s, or give the clone to %s", owner, a.User)
	case len(a.Identity) > 0 || a.HTTPSPass != "":
		return diag.Exposed.Hint(fmt.Errorf("%s belongs to %s, who would get the key or password that is for root", dir,
			owner), "set user: %s, who may read them then, or give the clone to root", owner)
	}
	a.User = owner
	return a.sole(h, dir)
}

// sole returns an error for an existing clone in which users other than the one who runs git can change what git reads
// or runs. A new clone needs no check, since git reads nothing of a clone above it.
func (a *access) sole(h *host.Host, dir string) error {
	at, err := placeOf(h, dir)
	if err != nil || at != checkout {
		return err
	}
	return h.CheckClone(dir, a.User)
}
