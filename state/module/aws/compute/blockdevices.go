package compute

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// device is a block device of an instance.
type device struct {
	name, virtual, kind, snapshot string
	size, iops                    *int32
	delete, encrypted             *bool
}

// deviceFields returns the fields of a block device.
func deviceFields() cloud.Fields {
	return cloud.Fields{"size": cloud.Whole, "iops": cloud.Whole, "volume_type": cloud.Word,
		"snapshot_id": cloud.Word, "virtual_name": cloud.Word, "ephemeral_name": cloud.Word,
		"delete_on_termination": cloud.Flag, "encrypted": cloud.Flag}
}

// devices returns the devices of block_device_mappings. It maps the name of a device to its size, volume_type, iops,
// snapshot_id, delete_on_termination and encrypted, or to its virtual_name or ephemeral_name.
func (l *Launch) devices() (all []device, err error) {
	for _, item := range module.Items(l.Devices) {
		for key, v := range cloud.MapOf(item).All() {
			if err := deviceFields().Check("the block device "+value.Str(key), v); err != nil {
				return nil, err
			}
			m := cloud.MapOf(v)
			d := device{name: value.Str(key), virtual: cloud.Text(m, "virtual_name"), kind: cloud.Text(m, "volume_type"),
				snapshot: cloud.Text(m, "snapshot_id")}
			if v := cloud.Text(m, "ephemeral_name"); v != "" {
				d.virtual = v
			}
			for name, field := range map[string]**int32{"size": &d.size, "iops": &d.iops} {
				if n, ok := cloud.Number(m, name); ok {
					*field = &n
				}
			}
			for name, field := range map[string]**bool{"delete_on_termination": &d.delete, "encrypted": &d.encrypted} {
				if v, ok := m.Get(name); ok && v != nil {
					b := value.Truth(v)
					*field = &b
				}
			}
			if d.delete == nil && d.virtual == "" {
				d.delete = l.Delete
			}
			if !strings.HasPrefix(d.name, "/dev/") && !strings.HasPrefix(d.name, "xvd") && !strings.HasPrefix(d.name, "sd") {
				return nil, diag.Amazon.Hint(fmt.Errorf("%s is not a name of a device", d.name), "write - /dev/sda1: {size: 20}")
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func shownDevices(m *value.Map, devices []device) {
	if len(devices) == 0 {
		return
	}
	all := value.NewMap()
	for _, d := range devices {
		one := value.NewMap()
		cloud.Put(one, "virtual_name", &d.virtual)
		cloud.Put(one, "volume_type", &d.kind)
		cloud.Put(one, "snapshot_id", &d.snapshot)
		if d.size != nil {
			one.Set("size", int(*d.size))
		}
		if d.iops != nil {
			one.Set("iops", int(*d.iops))
		}
		if d.delete != nil {
			one.Set("delete_on_termination", *d.delete)
		}
		if d.encrypted != nil {
			one.Set("encrypted", *d.encrypted)
		}
		all.Set(d.name, one)
	}
	m.Set("block_device_mappings", all)
}
