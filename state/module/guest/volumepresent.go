package guest

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stored returns the volume of the guest's disk, or nil for a directory. A disk stays where it was made. there says
// that the root file system, or the directory at which a volume is mounted, exists.
func (p *present) stored(r record, known, there bool) *volume {
	group := p.Group
	if known && (r.Step == ready || there && r.Group == "") {
		group = r.Group
	}
	return record{Name: p.Name, ID: p.ID, Disk: p.Disk, Driver: p.Driver, Group: group}.volume()
}

// unmounted adds the mount of the disk of a guest that was made before to changes, if it is missing.
func (p *present) unmounted(h *host.Host, r record, changes *value.Map) error {
	if p.volume == nil || r.Step != ready {
		return nil
	}
	placed, err := p.volume.placed(h)
	if err == nil && !placed {
		changes.Set("disk", p.volume.device()+" mounted")
	}
	return err
}

// sizedVolume is sized for a volume, which is never made smaller.
func (p *present) sizedVolume(ctx context.Context, h *host.Host, r record, changes *value.Map) (comment string,
	err error) {
	made, bytes := r.Step == ready, p.wanted()
	switch {
	case made && r.Size == bytes:
		return "", nil
	case made && bytes < r.Size:
		return fmt.Sprintf("; its disk keeps the size of %s: a volume is not made smaller", diag.Size(r.Size)), nil
	case made:
		s, err := p.volume.look(ctx, h)
		if err != nil {
			return "", err
		}
		if err := s.fits(p.volume, bytes); err != nil {
			return fmt.Sprintf("; its disk keeps the size of %s: %v", diag.Size(s.size), err), nil
		}
	}
	p.bytes, p.kind = bytes, volumeKind
	changes.Set("size", p.Size+" ("+volumeKind+")")
	return "", nil
}

// wanted returns the size that the cloud gives the disk.
func (p *present) wanted() int64 {
	bytes, _ := cloud.ParseSize(p.Size) // checked by Valid
	return bytes
}

// enlarge makes the volume of a guest larger. Its record has no size meanwhile.
func (p *present) enlarge(ctx context.Context, h *host.Host, r record) (err error) {
	r.Size = 0
	if err := r.write(h); err != nil {
		return err
	}
	if r.Size, err = p.volume.grow(ctx, h, p.bytes); err != nil {
		return err
	}
	return r.write(h)
}

// prepareVolume removes the volume that an interrupted run began to make for the guest, of which before is the record.
// Then it enters the new volume, if there is to be one, into the record r. The disk of a guest that moves may have more
// content than its size allows: its volume is as large as that needs.
func (p *present) prepareVolume(ctx context.Context, h *host.Host, before record, r *record) error {
	if v := before.volume(); v != nil && before.Step == creating {
		if err := v.remove(ctx, h); err != nil {
			return err
		}
	}
	if p.volume == nil {
		return nil
	}
	if p.Moved {
		info, err := h.Files.Stat(p.Image)
		if err != nil {
			return err
		}
		p.bytes = max(p.bytes, info.Size+info.Size/8+reserve)
	}
	if is, err := h.Files.Resolve(cloud.Disks); err != nil || is != cloud.Disks {
		return diag.Container.Hint(fmt.Errorf("%s is a link to %s (%v), and volumes are mounted below it", cloud.Disks, is,
			err), "make it a directory")
	}
	s, err := p.volume.look(ctx, h)
	if err != nil {
		return err
	}
	if s.size > 0 {
		return diag.Container.Hint(fmt.Errorf("the volume %s exists, and no record says that it is a guest's",
			p.volume.device()), "rename it with lvrename, or remove it if its content is not needed")
	}
	r.Group, r.Size = p.volume.group, p.bytes
	return s.fits(p.volume, p.bytes)
}
