package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// A disk is put aside if another guest takes the name of its guest, as after a rollback of the cloud over the creation
// of that. It is kept under its ID, with its record, until the cloud has its guest again, or has deleted it.

// asidePrefix begins the names of disks that were put aside.
const asidePrefix = ".kept-"

func asidePath(name, disk string) string { return path.Join(cloud.Disks, asidePrefix+name+"-"+disk) }

func asideRecord(name, disk string) string { return asidePath(name, disk) + ".json" }

// asides returns the records of the disks that were put aside, sorted by name.
func asides(h *host.Host) (all []record, err error) {
	names, err := h.Files.ReadDir(cloud.Disks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		rest, is := strings.CutPrefix(strings.TrimSuffix(file, ".json"), asidePrefix)
		name, disk, both := strings.Cut(rest, "-")
		if !is || !both || checkName(name) != nil || file != path.Base(asideRecord(name, disk)) {
			continue
		}
		r, _, err := readRecordIn(h, name, path.Join(cloud.Disks, file))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// own returns the record of the guest's own disk, and whether its root file system is there. It sets p.other to the
// record of another guest that has the name on this node, and p.kept if the disk of this one was put aside.
func (p *present) own(h *host.Host, r record, known, there bool) (record, bool, bool, error) {
	p.other, p.kept = record{}, false
	if known && r.disk() != p.disk() && r.Step != deleting {
		if v := r.volume(); v != nil && r.Step == ready {
			return r, known, there, otherVolume(v)
		}
		moved, err := exists(h, asidePath(r.Name, r.disk())) // by a run that was interrupted
		if err == nil && r.Step == ready && !there && !moved {
			err = missing(r)
		}
		if err != nil {
			return r, known, there, err
		}
		p.other, r, known, there = r, record{}, false, false
	}
	if known && there {
		return r, known, there, nil
	}
	kept, is, err := readRecordIn(h, p.Name, asideRecord(p.Name, p.disk()))
	if err != nil || !is {
		return r, known, there, err
	}
	if p.kept, err = exists(h, asidePath(p.Name, p.disk())); p.kept {
		return kept, true, true, err
	}
	return r, known, there, err
}

// otherVolume is the error of a volume of another guest with the name of the guest.
func otherVolume(v *volume) error {
	file := recordPath(v.guest)
	return diag.Container.Hint(fmt.Errorf("another guest named %s has the volume %s", v.guest, v.path()),
		"to keep that volume, run: systemctl disable --now %s && mv %s %s-%s; the next run makes the new guest", v.unit(),
		file, file, v.disk)
}

// putAside stops the other guest that has the name of this one, and keeps its disk under its ID. What is left of the
// making of a disk that was not complete is removed.
func (p *present) putAside(ctx context.Context, h *host.Host) error {
	r := p.other
	if r.Name == "" {
		return nil
	}
	if r.Group != "" { // prepareVolume removes the volume, which is not complete
		return nil
	}
	there, err := exists(h, p.root())
	if err == nil {
		err = halt(ctx, h, r)
	}
	switch {
	case err != nil:
		return err
	case there:
		if err := r.writeTo(h, asideRecord(r.Name, r.disk())); err != nil {
			return err
		}
		if err := h.Files.Rename(p.root(), asidePath(r.Name, r.disk())); err != nil {
			return errors.Join(host.Failed(diag.Container, err, "putting aside the disk of another guest "+r.Name,
				"see whether a file system is mounted at "+p.root()), removeFile(h, asideRecord(r.Name, r.disk())))
		}
	case r.Step == creating:
		if err := removeTree(ctx, h, r.Name, partialOf(r.disk())); err != nil {
			return err
		}
	}
	return removeFile(h, recordPath(r.Name))
}

// putAsideText says what becomes of the disk of another guest, "" if there is none.
func (p *present) putAsideText() string {
	if p.other.Name == "" {
		return ""
	}
	at := asidePath(p.Name, p.other.disk())
	return fmt.Sprintf("another guest was named %s here: its disk is kept in %s. It comes back when the cloud has that "+
		"guest again (corpus point). To remove it: rm -rf --one-file-system %s %s.json", p.Name, at, at, at)
}

// bringBack gives the disk of the guest that was put aside its place again.
func (p *present) bringBack(h *host.Host) error {
	r, _, err := readRecordIn(h, p.Name, asideRecord(p.Name, p.disk()))
	if err != nil {
		return err
	}
	step := r.Step
	r.Step = creating
	if err := r.write(h); err != nil {
		return err
	}
	if err := h.Files.Rename(asidePath(p.Name, p.disk()), p.root()); err != nil {
		return err
	}
	if err := removeFile(h, asideRecord(p.Name, p.disk())); err != nil {
		return err
	}
	r.Step = step
	return r.write(h)
}
