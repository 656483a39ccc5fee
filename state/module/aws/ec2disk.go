package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// volumeNamed says which volume is meant: by its ID, its tag Name, or the device of an instance.
type volumeNamed struct {
	common
	Name         string `sls:"name"`
	VolumeName   string `sls:"volume_name"`
	VolumeID     string `sls:"volume_id"`
	InstanceName string `sls:"instance_name"`
	InstanceID   string `sls:"instance_id"`
	Device       string `sls:"device"`
}

func (v *volumeNamed) title() string {
	if v.VolumeName != "" {
		return v.VolumeName
	}
	return v.Name
}

// volumesOf are the volumes that a filter finds and that are not being deleted.
func volumesOf(ctx context.Context, a *account, filters ...types.Filter) ([]types.Volume, error) {
	filters = append(filters,
		types.Filter{Name: sdk.String("status"), Values: []string{"creating", "available", "in-use"}})
	return pages(func(next *string) ([]types.Volume, *string, error) {
		page, err := ec2Of(a).DescribeVolumes(ctx, &ec2.DescribeVolumesInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, failed("listing the volumes of", a.config.Region, err)
		}
		return page.Volumes, page.NextToken, nil
	})
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// find is the one volume that is meant; nil for none.
func (v *volumeNamed) find(ctx context.Context, a *account, byDevice bool) (*types.Volume, error) {
	var filters []types.Filter
	switch {
	case v.VolumeID != "":
		filters = append(filters, filter("volume-id", v.VolumeID))
	case byDevice:
		instance, err := v.instance(ctx, a)
		if instance == nil || err != nil {
			return nil, err
		}
		filters = append(filters, filter("attachment.instance-id", *instance.InstanceId),
			filter("attachment.device", v.Device))
	default:
		filters = byName(v.title())
	}
	all, err := volumesOf(ctx, a, filters...)
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, diag.WithHint(fmt.Errorf("%d volumes are named %s", len(all), v.title()), "give volume_id")
	}
	return &all[0], nil
}

// instance is the one that the volume is attached to; nil for none.
func (v *volumeNamed) instance(ctx context.Context, a *account) (*types.Instance, error) {
	n := instanceNamed{InstanceName: v.InstanceName, InstanceID: v.InstanceID}
	return n.find(ctx, a)
}

// volumePresent is boto_ec2.volume_present: a volume that is attached to an instance.
type volumePresent struct {
	volumeNamed
	Size      *int   `sls:"size"`
	Snapshot  string `sls:"snapshot_id"`
	Type      string `sls:"volume_type"`
	IOPS      *int   `sls:"iops"`
	Encrypted bool   `sls:"encrypted"`
	KMS       string `sls:"kms_key_id"`
}

// Valid implements module.Validated.
func (v *volumePresent) Valid() error {
	if (v.InstanceName == "") == (v.InstanceID == "") || v.Device == "" {
		return diag.WithHint(errors.New("a volume is attached to one instance, as a device"),
			"give one of instance_name and instance_id, and device")
	}
	return nil
}

// RunsBeside implements module.Concurrent.
func (*volumePresent) RunsBeside() {}

// Check implements module.Resource.
func (v *volumePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return v.check(v.look(ctx))
}

func (v *volumePresent) look(ctx context.Context) (*plan, error) {
	a, err := v.cloud.account(ctx, "ec2", v.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	instance, err := v.instance(ctx, a)
	if err != nil {
		return nil, err
	}
	to := later
	if instance != nil {
		to = *instance.InstanceId
	} else if v.InstanceName == "" || !a.expects("instance", v.InstanceName) {
		return nil, missing("instance", v.InstanceName+v.InstanceID, "boto_ec2.instance_present")
	}
	has, err := v.find(ctx, a, false)
	if err != nil {
		return nil, err
	}
	if has == nil {
		if v.VolumeID != "" {
			return nil,
				diag.WithHint(fmt.Errorf("there is no volume %s", v.VolumeID), "correct volume_id, or give a name to make one")
		}
		v.create(p, a)
		has = &types.Volume{}
	} else {
		v.drift(p, a, has)
	}
	v.attach(p, a, has, to)
	return p, nil
}

func (v *volumePresent) create(p *plan, a *account) {
	fields := value.NewMap("volume", v.title(), "encrypted", v.Encrypted)
	put(fields, "snapshot_id", &v.Snapshot)
	put(fields, "volume_type", &v.Type)
	for name, n := range map[string]*int{"size": v.Size, "iops": v.IOPS} {
		if n != nil {
			fields.Set(name, *n)
		}
	}
	p.create(fields)
	p.then("volume made", func(ctx context.Context) error {
		instance, err := v.instance(ctx, a)
		if err != nil || instance == nil || instance.Placement == nil {
			return errors.Join(err, missing("instance", v.InstanceName, "boto_ec2.instance_present"))
		}
		out, err := ec2Of(a).CreateVolume(ctx, &ec2.CreateVolumeInput{AvailabilityZone: instance.Placement.AvailabilityZone,
			Size:       int32s(v.Size),
			SnapshotId: optional(v.Snapshot), VolumeType: types.VolumeType(v.Type), Iops: int32s(v.IOPS),
			Encrypted: &v.Encrypted,
			KmsKeyId:  optional(v.KMS), TagSpecifications: specs(types.ResourceTypeVolume, nil, v.title())})
		if err != nil {
			return failed("making volume", v.title(), err)
		}
		return waitFor(ctx, "volume "+v.title()+" is available", 10*time.Minute, func(ctx context.Context) (bool, error) {
			all, err := volumesOf(ctx, a, filter("volume-id", *out.VolumeId))
			return len(all) > 0 && all[0].State == types.VolumeStateAvailable, err
		})
	})
}

// drift plans what AWS changes of a volume: it grows, and takes another type.
func (v *volumePresent) drift(p *plan, a *account, has *types.Volume) {
	in := &ec2.ModifyVolumeInput{VolumeId: has.VolumeId}
	old := int(sdk.ToInt32(has.Size))
	switch {
	case v.Size != nil && *v.Size < old:
		p.warnings = append(p.warnings, fmt.Sprintf("size is %d, and a volume does not shrink", old))
	case v.Size != nil && p.compare("size", old, *v.Size):
		in.Size = int32s(v.Size)
	}
	if v.Type != "" && p.compare("volume_type", string(has.VolumeType), v.Type) {
		in.VolumeType = types.VolumeType(v.Type)
	}
	if v.IOPS != nil && p.compare("iops", int(sdk.ToInt32(has.Iops)), *v.IOPS) {
		in.Iops = int32s(v.IOPS)
	}
	if sdk.ToBool(has.Encrypted) != v.Encrypted {
		p.warnings = append(p.warnings, fmt.Sprintf("encrypted is %v and cannot be changed", sdk.ToBool(has.Encrypted)))
	}
	if p.new.Len() > 0 {
		p.then("volume changed", func(ctx context.Context) error {
			_, err := ec2Of(a).ModifyVolume(ctx, in)
			return failed("changing volume", v.title(), err)
		})
	}
}

func (v *volumePresent) attach(p *plan, a *account, has *types.Volume, instance string) {
	now := ""
	if len(has.Attachments) > 0 {
		now = sdk.ToString(has.Attachments[0].InstanceId) + " " + sdk.ToString(has.Attachments[0].Device)
	}
	if !p.compare("attached", now, instance+" "+v.Device) {
		return
	}
	p.then("volume attached", func(ctx context.Context) error {
		client := ec2Of(a)
		volume, err := v.find(ctx, a, false)
		if err != nil || volume == nil {
			return errors.Join(err, missing("volume", v.title(), "boto_ec2.volume_present"))
		}
		if len(volume.Attachments) > 0 {
			if _, err := client.DetachVolume(ctx, detachment(volume)); err != nil {
				return failed("detaching volume", v.title(), err)
			}
			if err := v.free(ctx, a, *volume.VolumeId); err != nil {
				return err
			}
		}
		target, err := v.instance(ctx, a)
		if err != nil || target == nil {
			return errors.Join(err, missing("instance", v.InstanceName+v.InstanceID, "boto_ec2.instance_present"))
		}
		_, err = client.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: volume.VolumeId, InstanceId: target.InstanceId,
			Device: &v.Device})
		return failed("attaching volume", v.title(), err)
	})
}

// detachment asks for a volume to be taken from the instance that has it.
func detachment(v *types.Volume) *ec2.DetachVolumeInput {
	at := v.Attachments[0]
	return &ec2.DetachVolumeInput{VolumeId: v.VolumeId, InstanceId: at.InstanceId, Device: at.Device}
}

// free waits until nothing has a volume.
func (v *volumeNamed) free(ctx context.Context, a *account, id string) error {
	return waitFor(ctx, "volume "+v.title()+" is detached", 10*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := volumesOf(ctx, a, filter("volume-id", id))
		return len(all) == 0 || all[0].State == types.VolumeStateAvailable, err
	})
}

// volumeAbsent is boto_ec2.volume_absent.
type volumeAbsent struct{ volumeNamed }

// Valid implements module.Validated.
func (v *volumeAbsent) Valid() error {
	if v.VolumeName == "" && v.VolumeID == "" && (v.InstanceName+v.InstanceID == "" || v.Device == "") {
		return diag.WithHint(errors.New("nothing says which volume this is"),
			"give volume_name, volume_id, or an instance with its device")
	}
	return nil
}

// Check implements module.Resource.
func (v *volumeAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := v.cloud.account(ctx, "ec2", v.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := v.find(ctx, a, v.VolumeName == "" && v.VolumeID == "")
	if has != nil && err == nil {
		p.remove(value.NewMap("volume", sdk.ToString(has.VolumeId)))
		p.then("volume deleted", func(ctx context.Context) error {
			client := ec2Of(a)
			if len(has.Attachments) > 0 {
				if _, err := client.DetachVolume(ctx, detachment(has)); err != nil {
					return failed("detaching volume", v.title(), err)
				}
				if err := v.free(ctx, a, *has.VolumeId); err != nil {
					return err
				}
			}
			_, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: has.VolumeId})
			return failed("deleting volume", v.title(), err)
		})
	}
	return v.check(p, err)
}

// volumesTagged is boto_ec2.volumes_tagged: tags of volumes that filters find.
type volumesTagged struct {
	common
	Name          string `sls:"name"`
	Maps          []any  `sls:"tag_maps,required"`
	Authoritative bool   `sls:"authoritative"`
}

// Check implements module.Resource.
func (t *volumesTagged) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return t.check(t.look(ctx))
}

func (t *volumesTagged) look(ctx context.Context) (*plan, error) {
	a, err := t.cloud.account(ctx, "ec2", t.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	for _, item := range t.Maps {
		m := mapOf(item)
		tags := mapOf(m.Value("tags"))
		if tags == nil {
			return nil, diag.WithHint(fmt.Errorf("the entry %s of tag_maps has no tags", value.Repr(item)),
				"write filters, tags and in_states")
		}
		filters, err := t.filters(ctx, a, m)
		if err != nil {
			return nil, err
		}
		all, err := volumesOf(ctx, a, filters...)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			t.tag(p, a, v, tags)
		}
	}
	return p, nil
}

// filters are those of an entry. instance_name is one of Salt's own.
func (t *volumesTagged) filters(ctx context.Context, a *account, m *value.Map) (all []types.Filter, err error) {
	for key, v := range mapOf(m.Value("filters")).All() {
		name := value.Str(key)
		if name != "instance_name" {
			all = append(all, filter(name, texts(v)...))
			continue
		}
		instances, err := instancesOf(ctx, a, value.Str(v), "")
		if err != nil {
			return nil, err
		}
		ids := []string{"none"}
		for _, i := range instances {
			ids = append(ids, *i.InstanceId)
		}
		all = append(all, filter("attachment.instance-id", ids...))
	}
	return all, nil
}

func (t *volumesTagged) tag(p *plan, a *account, v types.Volume, want *value.Map) {
	one, id := newPlan(), sdk.ToString(v.VolumeId)
	has := v.Tags
	if !t.Authoritative {
		has = slices.DeleteFunc(slices.Clone(has), func(tag types.Tag) bool { return !want.Has(sdk.ToString(tag.Key)) })
	}
	tagEC2(one, a, id, has, want)
	if len(one.steps) > 0 {
		p.differ("tags of "+id, one.old.Value("tags"), one.new.Value("tags"))
		p.steps = append(p.steps, one.steps...)
	}
}
