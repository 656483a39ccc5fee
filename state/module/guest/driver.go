package guest

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

const hour = time.Hour

// driver is a way to run guests. It determines the unit of a guest, which the init system of the node starts and stops,
// and the configuration of that unit. Root file systems, records, identities, moves and sizes are the same for all
// drivers, so a disk that one driver has run can be run by another one.
type driver interface {
	// Unit returns the name of the systemd unit that runs a guest.
	Unit(guest string) string
	// Settings returns the files that the unit of a guest needs. Several guests may have one of them in common.
	Settings(h *host.Host, p *present) ([]setting, error)
	// Own returns the file or directory with the settings of one guest, which is removed with the guest.
	Own(guest string) string
	// Give gives a new root file system to the user IDs of its guest, unless the unit does that.
	Give(ctx context.Context, h *host.Host, p *present, dir string) error
}

// setting is a file of a unit.
type setting struct{ file, content string }

// drivers returns all drivers by name.
func drivers() map[string]driver {
	return map[string]driver{cloud.Nspawn: nspawn{}, cloud.LXC: lxc{}}
}

func driverNamed(name string) (driver, error) {
	d, known := drivers()[name]
	if !known {
		return nil, diag.Argument.Hint(fmt.Errorf("there is no driver %q of guests", name), "drivers are %s",
			strings.Join(cloud.Drivers(), ", "))
	}
	return d, nil
}

// nspawn runs guests with systemd-nspawn, with the unit that comes with it. Each guest has user IDs of its own: its
// root is not root on the node.
type nspawn struct{}

func (nspawn) Unit(guest string) string { return "systemd-nspawn@" + guest + ".service" }

func (nspawn) Own(guest string) string { return path.Join("/etc/systemd/nspawn", guest+".nspawn") }

func (n nspawn) Settings(_ *host.Host, p *present) ([]setting, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by guest.present.\n[Exec]\nBoot=yes\nPrivateUsers=%d:%d\nLinkJournal=no\n", p.UIDs,
		usersOfGuest)
	fmt.Fprintf(&b, "\n[Files]\nPrivateUsersOwnership=chown\n")
	for _, source := range slices.Sorted(p.binds.Keys()) {
		fmt.Fprintf(&b, "BindReadOnly=%s:%s\n", source, p.binds[source])
	}
	for _, m := range p.mounts {
		kind := "BindReadOnly"
		if m.Write {
			kind = "Bind"
		}
		fmt.Fprintf(&b, "%s=%s:%s\n", kind, m.At, m.target)
	}
	fmt.Fprintf(&b, "\n[Network]\n")
	switch {
	case p.Bridge == "":
		b.WriteString("Private=yes\nVirtualEthernet=no\n")
	case len("vb-"+p.Name) > longestInterface: // systemd-nspawn would give the port a hash as its name
		fmt.Fprintf(&b, "Private=yes\nVirtualEthernet=no\nVirtualEthernetExtra=%s:host0\n", p.port())
	default:
		fmt.Fprintf(&b, "Bridge=%s\n", p.Bridge)
	}
	return []setting{{n.Own(p.Name), b.String()}}, nil
}

// longestInterface is the maximum length, in characters, of the name of an interface.
const longestInterface = 15

// port returns the name of the port of a bridge for a guest whose name may be too long for it. The states of nodes join
// it to the bridge and filter what it sends.
func (p *present) port() string { return fmt.Sprintf("vb-%d", p.UIDs/usersOfGuest) }

// Give does nothing: systemd-nspawn gives the root file system to the guest when it starts it for the first time.
func (nspawn) Give(context.Context, *host.Host, *present, string) error { return nil }

// usersOfGuest is the number of user IDs of a guest.
const usersOfGuest = 65536

// differing returns the settings whose files are missing or have another content, by file.
func (p *present) differing(h *host.Host) (map[string]setting, error) {
	all, err := p.driver.Settings(h, p)
	if err != nil {
		return nil, err
	}
	some := map[string]setting{}
	for _, one := range all {
		same, err := hasContent(h, one.file, one.content)
		if err != nil {
			return nil, err
		}
		if !same {
			some[one.file] = one
		}
	}
	return some, nil
}

// configure writes the settings of the guest that differ.
func (p *present) configure(h *host.Host) error {
	some, err := p.differing(h)
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(some)) {
		if err := some[file].write(h); err != nil {
			return err
		}
	}
	return nil
}

// write writes the file.
func (s setting) write(h *host.Host) error {
	if err := h.MkdirAll(path.Dir(s.file)); err != nil {
		return err
	}
	return h.Files.Write(s.file, host.NewFile{Content: strings.NewReader(s.content), UID: -1, GID: -1,
		ReplaceLink: true})
}
