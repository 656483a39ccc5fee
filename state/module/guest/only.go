package guest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// only implements guest.only: no other guests run on a node than those of the cloud. Guests that were deleted from the
// cloud lose their disks. Any other guest is stopped, and keeps its disk, but not the files that the node has for it:
// they may have the password of its backups.
type only struct {
	Name    string   `sls:"name"`
	Guests  []string `sls:"guests"`  // IDs of the disks of the node's guests
	Deleted []string `sls:"deleted"` // IDs of the disks that are removed

	remove, stop, drop []record // drop has those whose disks were put aside
}

// Valid returns an error for invalid IDs, and for a guest that is to be both kept and removed.
func (o *only) Valid() error {
	for _, id := range slices.Concat(o.Guests, o.Deleted) {
		if err := checkID(id); err != nil {
			return err
		}
	}
	for _, id := range o.Deleted {
		if slices.Contains(o.Guests, id) {
			return fmt.Errorf("the disk with the ID %s is among the guests and among the deleted ones", id)
		}
	}
	return nil
}

func (o *only) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := o.Valid(); err != nil {
		return module.Diff{}, err
	}
	all, err := records(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	o.remove, o.stop = nil, nil
	for _, r := range all {
		switch {
		case r.Step == deleting, slices.Contains(o.Deleted, r.disk()):
			o.remove = append(o.remove, r)
			changes.Set(r.Name, "removed with its disk")
		case !slices.Contains(o.Guests, r.disk()):
			runs, err := runsOrStarts(ctx, h, r)
			if err != nil {
				return module.Diff{}, err
			}
			keeps, err := exists(h, path.Join(Records, r.Name))
			switch {
			case err != nil:
				return module.Diff{}, err
			case runs:
				changes.Set(r.Name, "stopped; its disk is kept")
			case keeps:
				changes.Set(r.Name, "its keys and the settings of its backups removed; its disk is kept")
			default:
				continue
			}
			o.stop = append(o.stop, r)
		}
	}
	kept, err := o.aside(h, changes)
	if err != nil {
		return module.Diff{}, err
	}
	if changes.Len() == 0 {
		return module.Diff{Comment: "no other guests are on this node" + kept}, nil
	}
	return module.Diff{Changes: changes, Comment: "other guests would be stopped or removed"}, nil
}

// aside adds the removal of disks that were put aside, and are among the deleted ones, to changes. It returns a comment
// about the others.
func (o *only) aside(h *host.Host, changes *value.Map) (comment string, err error) {
	all, err := asides(h)
	o.drop = nil
	for _, r := range all {
		at := asidePath(r.Name, r.disk())
		if slices.Contains(o.Deleted, r.disk()) {
			o.drop = append(o.drop, r)
			changes.Set(at, "removed")
			continue
		}
		there, unknown := exists(h, at)
		if err = errors.Join(err, unknown); there {
			comment += "; the disk of an earlier guest " + r.Name + " is kept in " + at
		}
	}
	return comment, err
}

// runsOrStarts reports whether a guest runs or starts at boot.
func runsOrStarts(ctx context.Context, h *host.Host, r record) (bool, error) {
	d, err := driverNamed(r.Driver)
	if err != nil {
		return false, err
	}
	unit, err := h.Units.Unit(ctx, d.Unit(r.Name), "")
	return unit.Running() || unit.Boot == "enabled", err
}

func (o *only) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	done := value.NewMap()
	var errs []error
	for _, r := range o.stop {
		if err := halt(ctx, h, r); err != nil {
			errs = append(errs, fmt.Errorf("stopping guest %s: %w", r.Name, err))
			continue
		}
		if err := removeTree(ctx, h, r.Name, path.Join(Records, r.Name)); err != nil {
			return module.Report{Changes: done}, err
		}
		what, _ := d.Changes.Get(r.Name)
		done.Set(r.Name, what)
	}
	for _, r := range o.remove {
		if err := remove(ctx, h, r); err != nil {
			errs = append(errs, fmt.Errorf("removing guest %s: %w", r.Name, err))
			continue
		}
		done.Set(r.Name, "removed with its disk")
	}
	for _, r := range o.drop {
		at := asidePath(r.Name, r.disk())
		err := removeTree(ctx, h, r.Name, at)
		if err == nil {
			err = removeFile(h, asideRecord(r.Name, r.disk()))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done.Set(at, "removed")
	}
	if len(errs) > 0 {
		return module.Report{Changes: done}, errors.Join(errs...)
	}
	return module.Report{Changes: d.Changes, Comment: "no other guests are on this node"}, nil
}

// halt stops a guest, now and at boot.
func halt(ctx context.Context, h *host.Host, r record) error {
	d, err := driverNamed(r.Driver)
	if err != nil {
		return err
	}
	unit, err := h.Units.Unit(ctx, d.Unit(r.Name), "")
	if err != nil {
		return err
	}
	if unit.Running() {
		if err := h.Units.Act(ctx, host.Stop, d.Unit(r.Name), true); err != nil {
			return err
		}
	}
	if unit.Boot != "enabled" {
		return nil
	}
	return h.Units.SetBoot(ctx, host.Disable, d.Unit(r.Name), false)
}

// remove stops a guest and removes its disk. It removes the record last, so that a run after a power failure continues
// the removal.
func remove(ctx context.Context, h *host.Host, r record) error {
	d, err := driverNamed(r.Driver)
	if err != nil {
		return err
	}
	r.Step = deleting
	if err := r.write(h); err != nil {
		return err
	}
	if err := halt(ctx, h, r); err != nil {
		return err
	}
	if err := release(h, r.Name, nil); err != nil {
		return err
	}
	if v := r.volume(); v != nil {
		if err := v.remove(ctx, h); err != nil {
			return err
		}
	}
	for _, dir := range []string{path.Join(cloud.Disks, r.Name), partialOf(r.disk()),
		path.Join(Records, r.Name), d.Own(r.Name)} {
		if err := removeTree(ctx, h, r.Name, dir); err != nil {
			return err
		}
	}
	archives, err := archivesOf(h, r.Name)
	if err != nil {
		return err
	}
	for _, file := range append(archives, recordPath(r.Name)) {
		if err := removeFile(h, file); err != nil {
			return err
		}
	}
	return nil
}
