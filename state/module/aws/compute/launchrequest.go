package compute

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// groupIDs returns the IDs of the security groups of the instances.
func (l *Launch) groupIDs(ctx context.Context, a *cloud.Account, vpc string) ([]string, error) {
	if len(l.Groups) == 0 {
		return nil, nil
	}
	if vpc == "" || l.VPCID != "" || l.VPCName != "" {
		var err error
		if vpc, err = network.VPCOf(ctx, a, l.VPCID, l.VPCName); err != nil {
			return nil, err
		}
	}
	return network.GroupIDs(ctx, a, vpc, l.Groups)
}

// Fields returns the declared fields of the launch template, as a plan shows them.
func (l *Launch) Fields(ctx context.Context, c *cloud.Cloud, a *cloud.Account, vpc string) (*value.Map, error) {
	m := value.NewMap()
	for _, f := range []struct {
		name string
		v    *string
	}{{"image_id", &l.Image}, {"key_name", &l.Key}, {"kernel_id", &l.Kernel}, {"ramdisk_id", &l.RAMDisk},
		{"instance_type", &l.Type}} {
		cloud.Put(m, f.name, f.v)
	}
	ids, err := l.groupIDs(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	if l.Public != nil {
		m.Set("associate_public_ip_address", *l.Public)
	}
	if len(ids) > 0 {
		m.Set("security_groups", cloud.Sorted(ids))
	}
	data, err := l.userData(c)
	if err != nil {
		return nil, err
	}
	userDataField(m, data)
	if l.Monitoring != nil {
		m.Set("instance_monitoring", *l.Monitoring)
	}
	if l.Optimized != nil {
		m.Set("ebs_optimized", *l.Optimized)
	}
	cloud.Put(m, "instance_profile_name", &l.Profile)
	cloud.Put(m, "spot_price", &l.Spot)
	devices, err := l.devices()
	shownDevices(m, devices)
	return m, err
}

// data returns the launch template in the form of a request.
func (l *Launch) data(ctx context.Context, c *cloud.Cloud, a *cloud.Account,
	vpc string) (*types.RequestLaunchTemplateData, error) {
	d := &types.RequestLaunchTemplateData{InstanceType: types.InstanceType(l.Type), EbsOptimized: l.Optimized}
	for field, v := range map[**string]string{&d.ImageId: l.Image, &d.KeyName: l.Key, &d.KernelId: l.Kernel,
		&d.RamDiskId: l.RAMDisk} {
		if v != "" {
			*field = &v
		}
	}
	ids, err := l.groupIDs(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	if l.Public != nil {
		d.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: sdk.Int32(0),
			AssociatePublicIpAddress: l.Public, Groups: ids}}
	} else {
		d.SecurityGroupIds = ids
	}
	data, err := l.userData(c)
	if err != nil {
		return nil, err
	}
	if data != "" {
		d.UserData = &data
	}
	if l.Monitoring != nil {
		d.Monitoring = &types.LaunchTemplatesMonitoringRequest{Enabled: l.Monitoring}
	}
	if l.Profile != "" {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &l.Profile}
	}
	if l.Spot != "" {
		d.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot,
			SpotOptions: &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: &l.Spot}}
	}
	devices, err := l.devices()
	for _, one := range devices {
		b := types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: &one.name}
		if one.virtual != "" {
			b.VirtualName = &one.virtual
		} else {
			b.Ebs = &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: one.size, VolumeType: types.VolumeType(one.kind),
				Iops: one.iops, DeleteOnTermination: one.delete, Encrypted: one.encrypted}
			if one.snapshot != "" {
				b.Ebs.SnapshotId = &one.snapshot
			}
		}
		d.BlockDeviceMappings = append(d.BlockDeviceMappings, b)
	}
	return d, err
}
