package compute

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
)

// address plans the elastic address of the instance.
func (i *instancePresent) address(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.Instance) error {
	want := i.PublicIP + i.AllocationID
	now := sdk.ToString(has.PublicIpAddress)
	switch {
	case want == "" && !i.Allocate, i.PublicIP != "" && now == i.PublicIP, i.Allocate && now != "" && elastic(has):
		return nil
	case i.Allocate:
		want = cloud.Later
	case i.AllocationID != "":
		if same, err := holds(ctx, a, has, i.AllocationID); same || err != nil {
			return err
		}
	}
	p.Differ("public_ip", now, want)
	p.Then("elastic address associated", func(ctx context.Context) error {
		instance, err := i.find(ctx, a)
		if err != nil || instance == nil {
			return errors.Join(err, cloud.Missing("instance", i.title(), "boto_ec2.instance_present"))
		}
		client, in := network.EC2Of(a), &ec2.AssociateAddressInput{InstanceId: instance.InstanceId,
			AllocationId: cloud.Optional(i.AllocationID), PublicIp: cloud.Optional(i.PublicIP)}
		if i.Allocate {
			out, err := client.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
			if err != nil {
				return cloud.Failed("allocating an address for instance", i.title(), err)
			}
			in.AllocationId = out.AllocationId
		}
		_, err = client.AssociateAddress(ctx, in)
		return cloud.Failed("associating an address with instance", i.title(), err)
	})
	return nil
}

// elastic reports whether the public address of an instance is an elastic address of the account. AWS returns amazon as
// the owner of other addresses.
func elastic(has *types.Instance) bool {
	return slices.ContainsFunc(has.NetworkInterfaces, func(n types.InstanceNetworkInterface) bool {
		return n.Association != nil && sdk.ToString(n.Association.IpOwnerId) != "amazon"
	})
}

// holds reports whether the address of an allocation is associated with an instance.
func holds(ctx context.Context, a *cloud.Account, has *types.Instance, allocation string) (bool, error) {
	out, err := network.EC2Of(a).DescribeAddresses(ctx, &ec2.DescribeAddressesInput{AllocationIds: []string{allocation}})
	if err != nil {
		return false, cloud.Failed("reading the address", allocation, err)
	}
	return len(out.Addresses) > 0 && has.InstanceId != nil &&
		sdk.ToString(out.Addresses[0].InstanceId) == *has.InstanceId, nil
}
