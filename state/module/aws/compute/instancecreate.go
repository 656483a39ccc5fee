package compute

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (i *instancePresent) create(ctx context.Context, p *cloud.Plan, a *cloud.Account, groups []string) error {
	a.Expect("instance", i.title())
	fields := value.NewMap("instance", i.title())
	image, owner, err := i.image(ctx, a)
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, v string }{{"image_id", image}, {"image_name", i.ImageName}, {"image_owner", owner},
		{"instance_type", i.Type},
		{"key_name", i.KeyName}, {"subnet_id", i.SubnetID}, {"subnet_name", i.SubnetName},
		{"instance_profile_name", i.ProfileName}} {
		cloud.Put(fields, f.name, &f.v)
	}
	if len(groups) > 0 {
		fields.Set("security_groups", cloud.Sorted(slices.Concat(i.Groups, i.GroupNames, i.GroupIDs)))
	}
	userDataField(fields, i.UserData)
	p.Create(fields)
	p.Then("instance made", func(ctx context.Context) error {
		in, err := i.request(ctx, a)
		if err != nil {
			return err
		}
		var made string
		err = cloud.WaitFor(ctx, "the instance profile of instance "+i.title()+" is seen", cloud.Soon,
			func(ctx context.Context) (bool, error) {
				out, err := network.EC2Of(a).RunInstances(ctx, in)
				if cloud.HasCode(err, "InvalidParameterValue") && strings.Contains(err.Error(), "nstance profile") {
					return false, nil // AWS does not show a new profile everywhere at once
				}
				if err == nil {
					made = sdk.ToString(out.Instances[0].InstanceId)
				}
				return err == nil, cloud.Failed("making instance", i.title(), err)
			})
		if err != nil {
			return err
		}
		if err := i.reached(ctx, a, made, "running"); err != nil || i.Target != "stopped" {
			return err
		}
		return i.turn(ctx, a, made)
	})
	return nil
}

// request returns the request that makes the instance.
func (i *instancePresent) request(ctx context.Context, a *cloud.Account) (*ec2.RunInstancesInput, error) {
	data, err := i.launch().data(ctx, i.Cloud, a, "")
	if err != nil {
		return nil, err
	}
	image, _, err := i.image(ctx, a)
	if err != nil {
		return nil, err
	}
	subnet, err := i.subnet(ctx, a)
	if err != nil {
		return nil, err
	}
	groups, err := i.groups(ctx, a)
	if err != nil {
		return nil, err
	}
	in := &ec2.RunInstancesInput{MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ImageId: &image, KeyName: data.KeyName,
		InstanceType: data.InstanceType,
		UserData:     data.UserData, EbsOptimized: i.Optimized, DisableApiTermination: i.Protected, SecurityGroupIds: groups,
		KernelId: cloud.Optional(i.Kernel), RamdiskId: cloud.Optional(i.RAMDisk), SubnetId: cloud.Optional(subnet),
		PrivateIpAddress:                  cloud.Optional(i.PrivateIP),
		ClientToken:                       sdk.String(cmp.Or(i.Token, i.Cloud.Token("instance "+i.title()))),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehavior(i.Shutdown)}
	if i.Monitoring != nil {
		in.Monitoring = &types.RunInstancesMonitoringEnabled{Enabled: i.Monitoring}
	}
	if i.Placement+i.PlaceGroup+i.Tenancy != "" {
		in.Placement = &types.Placement{AvailabilityZone: cloud.Optional(i.Placement),
			GroupName: cloud.Optional(i.PlaceGroup),
			Tenancy:   types.Tenancy(i.Tenancy)}
	}
	if i.ProfileARN+i.ProfileName != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: cloud.Optional(i.ProfileARN),
			Name: cloud.Optional(i.ProfileName)}
	}
	for _, d := range data.BlockDeviceMappings {
		b := types.BlockDeviceMapping{DeviceName: d.DeviceName, VirtualName: d.VirtualName}
		if d.Ebs != nil {
			b.Ebs = &types.EbsBlockDevice{VolumeSize: d.Ebs.VolumeSize, VolumeType: d.Ebs.VolumeType, Iops: d.Ebs.Iops,
				DeleteOnTermination: d.Ebs.DeleteOnTermination, Encrypted: d.Ebs.Encrypted, SnapshotId: d.Ebs.SnapshotId}
		}
		in.BlockDeviceMappings = append(in.BlockDeviceMappings, b)
	}
	tags := value.NewMap("Name", i.title())
	tags.Update(i.Tags)
	in.TagSpecifications = network.Specs(types.ResourceTypeInstance, tags, "")
	return in, i.interfaced(ctx, a, in)
}

func (i *instancePresent) launch() *Launch {
	return &Launch{Key: i.KeyName, UserData: i.UserData, Type: i.Type, Devices: i.Devices}
}

// interfaced sets an existing network interface in the request, if one is given. The interface has its own subnet,
// security groups and address, so they are removed from the request.
func (i *instancePresent) interfaced(ctx context.Context, a *cloud.Account, in *ec2.RunInstancesInput) error {
	id := i.NICID
	if i.NICName != "" {
		has, err := interfaceOf(ctx, a, i.NICName, "")
		if err != nil || has == nil {
			return errors.Join(err, cloud.Missing("network interface", i.NICName, "boto_ec2.eni_present"))
		}
		id = sdk.ToString(has.NetworkInterfaceId)
	}
	if id != "" {
		in.SubnetId, in.SecurityGroupIds, in.PrivateIpAddress = nil, nil, nil
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: sdk.Int32(0),
			NetworkInterfaceId: &id}}
	}
	return nil
}

// reached waits until an instance is in a state.
func (i *instancePresent) reached(ctx context.Context, a *cloud.Account, id, state string) error {
	return cloud.WaitFor(ctx, "instance "+i.title()+" is "+state, 10*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := InstancesOf(ctx, a, "", id)
		return len(all) > 0 && all[0].State != nil && string(all[0].State.Name) == state, err
	})
}

// turn starts or stops an instance, as target_state says, and waits until it has the state.
func (i *instancePresent) turn(ctx context.Context, a *cloud.Account, id string) (err error) {
	if i.Target == "stopped" {
		_, err = network.EC2Of(a).StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{id}})
	} else {
		_, err = network.EC2Of(a).StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	}
	if err != nil {
		return cloud.Failed("starting or stopping instance", i.title(), err)
	}
	return i.reached(ctx, a, id, i.Target)
}
