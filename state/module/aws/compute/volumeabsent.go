package compute

import (
	"context"
	"errors"

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

// volumeAbsent implements boto_ec2.volume_absent.
type volumeAbsent struct{ volumeNamed }

// Valid implements module.Validated.
func (v *volumeAbsent) Valid() error {
	if v.VolumeName == "" && v.VolumeID == "" && (v.InstanceName+v.InstanceID == "" || v.Device == "") {
		return diag.Amazon.Hint(errors.New("nothing says which volume this is"),
			"give volume_name, volume_id, or an instance with its device")
	}
	return nil
}

// Check implements module.Resource.
func (v *volumeAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := v.Cloud.Account(ctx, "ec2", v.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := v.find(ctx, a, v.VolumeName == "" && v.VolumeID == "")
	if has != nil && err == nil {
		p.Remove(sdk.ToString(has.VolumeId), value.NewMap("volume", v.title()))
		p.Then("volume deleted", func(ctx context.Context) error { return v.remove(ctx, a, has) })
	}
	return v.Planned(p, err)
}

// remove detaches and deletes the volume.
func (v *volumeAbsent) remove(ctx context.Context, a *cloud.Account, has *types.Volume) error {
	client := network.EC2Of(a)
	if len(has.Attachments) > 0 {
		if _, err := client.DetachVolume(ctx, detachment(has)); err != nil {
			return cloud.Failed("detaching volume", v.title(), err)
		}
		if err := v.free(ctx, a, *has.VolumeId); err != nil {
			return err
		}
	}
	_, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: has.VolumeId})
	return cloud.Failed("deleting volume", v.title(), err)
}
