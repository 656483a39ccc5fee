package guest

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/binding"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mountsDir has a directory for each guest with mounts, with a place for each of them. Drivers give these places to
// guests, and never the directories themselves: their owners can replace those at any time.
const mountsDir = "/run/corpus-guest-mounts"

// mounted is a directory of the node for a guest.
type mounted struct {
	binding.Binding
	target string
}

// parseMounts returns the mounts of the guest.
func (p *present) parseMounts() (all []mounted, err error) {
	for i, text := range p.Mounts {
		m, wrong := cloud.ParseMount(text)
		err = errors.Join(err, wrong)
		all = append(all, mounted{target: m.Target, Binding: binding.Binding{Source: m.Source,
			At: path.Join(mountsDir, p.Name, strconv.Itoa(i)), Write: m.Write, UID: m.UID, GID: m.GID, As: p.UIDs}})
	}
	return all, err
}

// unbound adds the mounts that are missing, or have another directory than that which is there now, to changes.
func (p *present) unbound(h *host.Host, changes *value.Map) error {
	var some []string
	for _, m := range p.mounts {
		is, err := h.Kernel.Bound(m.Binding)
		if err != nil {
			return err
		}
		if !is {
			some = append(some, m.Source)
		}
	}
	if len(some) > 0 {
		changes.Set("mounts", strings.Join(some, ", "))
	}
	return nil
}

// bind mounts the directories of the guest, and ends mounts that it no longer has.
func (p *present) bind(h *host.Host) error {
	var places []string
	for _, m := range p.mounts {
		places = append(places, m.At)
		is, err := h.Kernel.Bound(m.Binding)
		if err == nil && !is {
			err = h.Kernel.Bind(m.Binding)
		}
		if err != nil {
			return err
		}
	}
	return release(h, p.Name, places)
}

// release ends the mounts of a guest except for those at some places.
func release(h *host.Host, guest string, except []string) error {
	dir := path.Join(mountsDir, guest)
	names, err := h.Files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if at := path.Join(dir, name); !slices.Contains(except, at) {
			if err := h.Kernel.Unbind(at); err != nil {
				return err
			}
		}
	}
	return nil
}
