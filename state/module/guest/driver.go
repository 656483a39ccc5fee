package guest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

const hour = time.Hour

// driver is a way to run guests. A driver determines paths and units; guests are created and removed in the same way by
// all drivers.
type driver interface {
	// Dir returns the directory that holds the root file systems of guests, each under its guest's name.
	Dir() string
	// Unit returns the name of the systemd unit that runs a guest.
	Unit(guest string) string
	// Settings returns the file with the settings of that unit for a guest, and its content.
	Settings(p *present) (file, content string)
}

// The names of drivers.
const nspawnName = "nspawn"

// drivers returns all drivers by name.
func drivers() map[string]driver { return map[string]driver{nspawnName: nspawn{}} }

func driverNamed(name string) (driver, error) {
	d, known := drivers()[name]
	if !known {
		return nil, diag.Argument.Hint(fmt.Errorf("there is no driver %q of guests", name), "drivers are %s", nspawnName)
	}
	return d, nil
}

// nspawn runs guests with systemd-nspawn, with the unit that comes with it. Each guest has user IDs of its own: its
// root is not root on the node.
type nspawn struct{}

func (nspawn) Dir() string { return "/var/lib/machines" }

func (nspawn) Unit(guest string) string { return "systemd-nspawn@" + guest + ".service" }

func (nspawn) Settings(p *present) (file, content string) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by guest.present.\n[Exec]\nBoot=yes\nPrivateUsers=%d:%d\nLinkJournal=no\n", p.UIDs,
		usersOfGuest)
	fmt.Fprintf(&b, "\n[Files]\nPrivateUsersOwnership=chown\n")
	for _, source := range slices.Sorted(p.binds.Keys()) {
		fmt.Fprintf(&b, "BindReadOnly=%s:%s\n", source, p.binds[source])
	}
	fmt.Fprintf(&b, "\n[Network]\n")
	if p.Bridge == "" {
		b.WriteString("Private=yes\nVirtualEthernet=no\n")
	} else {
		fmt.Fprintf(&b, "Bridge=%s\n", p.Bridge)
	}
	return path.Join("/etc/systemd/nspawn", p.Name+".nspawn"), b.String()
}

// usersOfGuest is the number of user IDs of a guest.
const usersOfGuest = 65536
