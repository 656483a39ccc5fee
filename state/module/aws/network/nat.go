package network

import (
	"context"
	"errors"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// natGateway implements boto_vpc.nat_gateway_present and nat_gateway_absent: the NAT gateway of a subnet.
type natGateway struct {
	cloud.Common
	absent     bool
	Name       string `sls:"name"`
	SubnetID   string `sls:"subnet_id"`
	SubnetName string `sls:"subnet_name"`
	Allocation string `sls:"allocation_id"`
	Retries    int    `sls:"wait_for_delete_retries"` // ignored: a run waits until the gateway is gone
}

// Valid implements module.Validated.
func (n *natGateway) Valid() error {
	if (n.SubnetID == "") == (n.SubnetName == "") {
		return diag.Amazon.Hint(errors.New("a NAT gateway is in one subnet"), "give one of subnet_id and subnet_name")
	}
	return nil
}

// Check implements module.Resource.
func (n *natGateway) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return n.Planned(n.look(ctx))
}

// natOf returns the NAT gateway of a subnet that is in one of the given states, or nil if there is none.
func natOf(ctx context.Context, a *cloud.Account, subnet string, states ...string) (*types.NatGateway, error) {
	if subnet == cloud.Later {
		return nil, nil
	}
	all, err := cloud.Pages(func(next *string) ([]types.NatGateway, *string, error) {
		page, err := EC2Of(a).DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NextToken: next,
			Filter: []types.Filter{Filter("subnet-id", subnet), Filter("state", states...)}})
		if err != nil {
			return nil, nil, cloud.Failed("reading the NAT gateway of subnet", subnet, err)
		}
		return page.NatGateways, page.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("NAT gateway", "of the subnet "+subnet, all,
		func(n *types.NatGateway) *string { return n.NatGatewayId }, "")
}

// subnetOf returns the ID of the subnet that is given by its ID or its name.
func subnetOf(ctx context.Context, a *cloud.Account, id, name string) (string, error) {
	if id != "" {
		return id, nil
	}
	return SubnetIn(ctx, a, "", name)
}

func (n *natGateway) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := n.Cloud.Account(ctx, "vpc", n.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	if n.absent && n.SubnetName != "" {
		all, err := Subnets(ctx, a)
		if err != nil || !slices.ContainsFunc(all, func(s types.Subnet) bool { return NameOf(s.Tags) == n.SubnetName }) {
			return p, err
		}
	}
	subnet, err := subnetOf(ctx, a, n.SubnetID, n.SubnetName)
	if err != nil {
		return nil, err
	}
	has, err := natOf(ctx, a, subnet, "pending", "available")
	switch {
	case err != nil:
		return nil, err
	case has == nil && !n.absent:
		a.Expect("nat gateway", n.SubnetID+n.SubnetName)
		p.Create(value.NewMap("nat_gateway", subnet))
		p.Then("NAT gateway made", func(ctx context.Context) error { return n.create(ctx, a) })
	case has != nil && n.absent:
		p.Remove(sdk.ToString(has.NatGatewayId), value.NewMap("nat_gateway", subnet))
		p.Then("NAT gateway deleted", func(ctx context.Context) error { return n.remove(ctx, a, has) })
	}
	return p, nil
}

// create makes the gateway and waits until it is available. If no allocation is given, it allocates an address.
func (n *natGateway) create(ctx context.Context, a *cloud.Account) error {
	client := EC2Of(a)
	subnet, err := subnetOf(ctx, a, n.SubnetID, n.SubnetName)
	if err != nil {
		return err
	}
	allocation := n.Allocation
	if allocation == "" {
		out, err := client.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
		if err != nil {
			return cloud.Failed("allocating an address for the NAT gateway of subnet", subnet, err)
		}
		allocation = sdk.ToString(out.AllocationId)
	}
	if _, err := client.CreateNatGateway(ctx,
		&ec2.CreateNatGatewayInput{SubnetId: &subnet, AllocationId: &allocation}); err != nil {
		return cloud.Failed("making the NAT gateway of subnet", subnet, err)
	}
	return cloud.WaitFor(ctx, "the NAT gateway of subnet "+subnet+" is available", 10*time.Minute,
		func(ctx context.Context) (bool, error) {
			now, err := natOf(ctx, a, subnet, "available")
			return now != nil, err
		})
}

// remove deletes the gateway and waits until it is gone. The address of the gateway stays allocated to the account.
func (n *natGateway) remove(ctx context.Context, a *cloud.Account, has *types.NatGateway) error {
	subnet := sdk.ToString(has.SubnetId)
	if _, err := EC2Of(a).DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: has.NatGatewayId}); err != nil {
		return cloud.Failed("deleting the NAT gateway of subnet", subnet, err)
	}
	return cloud.WaitFor(ctx, "the NAT gateway of subnet "+subnet+" is gone", 10*time.Minute,
		func(ctx context.Context) (bool, error) {
			now, err := natOf(ctx, a, subnet, "pending", "available", "deleting")
			return now == nil, err
		})
}
