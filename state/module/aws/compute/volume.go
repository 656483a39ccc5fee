package compute

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// volumeNamed selects a volume by its ID, its tag Name, or the device of an instance.
type volumeNamed struct {
	cloud.Common
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

// volumesOf returns the volumes that match filters and are not being deleted.
func volumesOf(ctx context.Context, a *cloud.Account, filters ...types.Filter) ([]types.Volume, error) {
	filters = append(filters,
		types.Filter{Name: sdk.String("status"), Values: []string{"creating", "available", "in-use"}})
	return cloud.Pages(func(next *string) ([]types.Volume, *string, error) {
		page, err := network.EC2Of(a).DescribeVolumes(ctx, &ec2.DescribeVolumesInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, cloud.Failed("listing the volumes of", a.Config.Region, err)
		}
		return page.Volumes, page.NextToken, nil
	})
}

// find returns the selected volume, or nil if there is none. Several volumes are an error.
func (v *volumeNamed) find(ctx context.Context, a *cloud.Account, byDevice bool) (*types.Volume, error) {
	var filters []types.Filter
	switch {
	case v.VolumeID != "":
		filters = append(filters, network.Filter("volume-id", v.VolumeID))
	case byDevice:
		instance, err := v.instance(ctx, a)
		if instance == nil || err != nil {
			return nil, err
		}
		filters = append(filters, network.Filter("attachment.instance-id", *instance.InstanceId),
			network.Filter("attachment.device", v.Device))
	default:
		filters = network.ByName(v.title())
	}
	all, err := volumesOf(ctx, a, filters...)
	if err != nil {
		return nil, err
	}
	return cloud.Only("volume", v.title(), all, func(v *types.Volume) *string { return v.VolumeId }, "give volume_id")
}

// instance returns the instance that the arguments select, or nil if there is none.
func (v *volumeNamed) instance(ctx context.Context, a *cloud.Account) (*types.Instance, error) {
	n := instanceNamed{InstanceName: v.InstanceName, InstanceID: v.InstanceID}
	return n.find(ctx, a)
}

// volumePresent implements boto_ec2.volume_present: a volume that is attached to an instance.
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
		return diag.Amazon.Hint(errors.New("a volume is attached to one instance, as a device"),
			"give one of instance_name and instance_id, and device")
	}
	return nil
}

// RunsBeside implements module.Concurrent.
func (*volumePresent) RunsBeside() {}

// Check implements module.Resource.
func (v *volumePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return v.Planned(v.look(ctx))
}

func (v *volumePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := v.Cloud.Account(ctx, "ec2", v.Arguments)
	if err != nil {
		return nil, err
	}
	v.InstanceName = a.Called("instance", v.InstanceName)
	p := cloud.NewPlan()
	instance, err := v.instance(ctx, a)
	if err != nil {
		return nil, err
	}
	to := cloud.Later
	if instance != nil {
		to = *instance.InstanceId
	} else if v.InstanceName == "" || !a.Expects("instance", v.InstanceName) {
		return nil, cloud.Missing("instance", v.InstanceName+v.InstanceID, "boto_ec2.instance_present")
	}
	has, err := v.find(ctx, a, false)
	if err != nil {
		return nil, err
	}
	if has == nil {
		if v.VolumeID != "" {
			return nil,
				diag.Resource.Hint(
					fmt.Errorf("there is no volume %s", v.VolumeID), "correct volume_id, or give a name to make one")
		}
		v.create(p, a)
		has = &types.Volume{}
	} else {
		v.drift(p, a, has)
	}
	v.attach(p, a, has, to)
	if len(p.Steps) > 0 {
		v.expect(a, has, to)
	}
	return p, nil
}

func (v *volumePresent) create(p *cloud.Plan, a *cloud.Account) {
	fields := value.NewMap("volume", v.title(), "encrypted", v.Encrypted)
	cloud.Put(fields, "snapshot_id", &v.Snapshot)
	cloud.Put(fields, "volume_type", &v.Type)
	for name, n := range map[string]*int{"size": v.Size, "iops": v.IOPS} {
		if n != nil {
			fields.Set(name, *n)
		}
	}
	p.Create(fields)
	p.Then("volume made", func(ctx context.Context) error {
		instance, err := v.instance(ctx, a)
		if err != nil || instance == nil || instance.Placement == nil {
			return errors.Join(err, cloud.Missing("instance", v.InstanceName, "boto_ec2.instance_present"))
		}
		out, err := network.EC2Of(a).CreateVolume(ctx,
			&ec2.CreateVolumeInput{AvailabilityZone: instance.Placement.AvailabilityZone,
				Size:       cloud.Int32s(v.Size),
				SnapshotId: cloud.Optional(v.Snapshot), VolumeType: types.VolumeType(v.Type), Iops: cloud.Int32s(v.IOPS),
				Encrypted: &v.Encrypted,
				KmsKeyId:  cloud.Optional(v.KMS), TagSpecifications: network.Specs(types.ResourceTypeVolume, nil, v.title())})
		if err != nil {
			return cloud.Failed("making volume", v.title(), err)
		}
		return cloud.WaitFor(ctx, "volume "+v.title()+" is available", 10*time.Minute, func(ctx context.Context) (bool,
			error) {
			all, err := volumesOf(ctx, a, network.Filter("volume-id", *out.VolumeId))
			return len(all) > 0 && all[0].State == types.VolumeStateAvailable, err
		})
	})
}

// drift plans the changes that AWS can make to a volume: a larger size, another type or other IOPS. It warns of other
// differences.
func (v *volumePresent) drift(p *cloud.Plan, a *cloud.Account, has *types.Volume) {
	in := &ec2.ModifyVolumeInput{VolumeId: has.VolumeId}
	old := int(sdk.ToInt32(has.Size))
	switch {
	case v.Size != nil && *v.Size < old:
		p.Warnings = append(p.Warnings, fmt.Sprintf("size is %d, and a volume does not shrink", old))
	case v.Size != nil && p.Compare("size", old, *v.Size):
		in.Size = cloud.Int32s(v.Size)
	}
	if v.Type != "" && p.Compare("volume_type", string(has.VolumeType), v.Type) {
		in.VolumeType = types.VolumeType(v.Type)
	}
	if v.IOPS != nil && p.Compare("iops", int(sdk.ToInt32(has.Iops)), *v.IOPS) {
		in.Iops = cloud.Int32s(v.IOPS)
	}
	if sdk.ToBool(has.Encrypted) != v.Encrypted {
		p.Warnings = append(p.Warnings, fmt.Sprintf("encrypted is %v and cannot be changed", sdk.ToBool(has.Encrypted)))
	}
	if p.New.Len() > 0 {
		p.Then("volume changed", func(ctx context.Context) error {
			_, err := network.EC2Of(a).ModifyVolume(ctx, in)
			return cloud.Failed("changing volume", v.title(), err)
		})
	}
}

func (v *volumePresent) attach(p *cloud.Plan, a *cloud.Account, has *types.Volume, instance string) {
	now := ""
	if len(has.Attachments) > 0 {
		now = sdk.ToString(has.Attachments[0].InstanceId) + " " + sdk.ToString(has.Attachments[0].Device)
	}
	if !p.Compare("attached", now, instance+" "+v.Device) {
		return
	}
	p.Then("volume attached", func(ctx context.Context) error {
		client := network.EC2Of(a)
		volume, err := v.find(ctx, a, false)
		if err != nil || volume == nil {
			return errors.Join(err, cloud.Missing("volume", v.title(), "boto_ec2.volume_present"))
		}
		if len(volume.Attachments) > 0 {
			if _, err := client.DetachVolume(ctx, detachment(volume)); err != nil {
				return cloud.Failed("detaching volume", v.title(), err)
			}
			if err := v.free(ctx, a, *volume.VolumeId); err != nil {
				return err
			}
		}
		target, err := v.instance(ctx, a)
		if err != nil || target == nil {
			return errors.Join(err, cloud.Missing("instance", v.InstanceName+v.InstanceID, "boto_ec2.instance_present"))
		}
		_, err = client.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: volume.VolumeId, InstanceId: target.InstanceId,
			Device: &v.Device})
		if err != nil {
			return cloud.Failed("attaching volume", v.title(), err)
		}
		return cloud.WaitFor(ctx, "volume "+v.title()+" is attached", 10*time.Minute, func(ctx context.Context) (bool,
			error) {
			all, err := volumesOf(ctx, a, network.Filter("volume-id", *volume.VolumeId))
			return len(all) > 0 && all[0].State == types.VolumeStateInUse, err
		})
	})
}

// detachment returns the request that detaches a volume from its instance.
func detachment(v *types.Volume) *ec2.DetachVolumeInput {
	at := v.Attachments[0]
	return &ec2.DetachVolumeInput{VolumeId: v.VolumeId, InstanceId: at.InstanceId, Device: at.Device}
}

// free waits until a volume is detached.
func (v *volumeNamed) free(ctx context.Context, a *cloud.Account, id string) error {
	return cloud.WaitFor(ctx, "volume "+v.title()+" is detached", 10*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := volumesOf(ctx, a, network.Filter("volume-id", id))
		return len(all) == 0 || all[0].State == types.VolumeStateAvailable, err
	})
}
