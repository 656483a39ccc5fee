package network

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// FindSubnet returns the subnet with the ID or the name of the resource, or nil if there is none.
func (n *NetResource) FindSubnet(ctx context.Context, a *cloud.Account) (*types.Subnet, error) {
	all, err := Subnets(ctx, a)
	if err != nil {
		return nil, err
	}
	vpc, err := n.givenVPC(ctx, a)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(s types.Subnet) bool {
		if n.SubnetID != "" {
			return sdk.ToString(s.SubnetId) != n.SubnetID
		}
		return NameOf(s.Tags) != n.Name || vpc != "" && sdk.ToString(s.VpcId) != vpc
	})
	return onlySubnet(n.Name, found, "give vpc_name, vpc_id or subnet_id")
}

// givenVPC returns the ID of the VPC that the arguments name, cloud.Later if there is none, and "" if they name none.
func (n *NetResource) givenVPC(ctx context.Context, a *cloud.Account) (string, error) {
	if n.VPCID != "" || n.VPCName == "" {
		return n.VPCID, nil
	}
	has, err := VPCNamed(ctx, a, a.Called("vpc", n.VPCName))
	if has == nil || err != nil {
		return cloud.Later, err
	}
	return sdk.ToString(has.VpcId), nil
}

func (n *NetResource) subnet(ctx context.Context, p *cloud.Plan, a *cloud.Account) error {
	vpc, err := n.in(ctx, a)
	if err != nil {
		return err
	}
	has, err := n.FindSubnet(ctx, a)
	if err != nil {
		return err
	}
	if has == nil {
		a.Expect("subnet", n.Name)
		fields := value.NewMap("subnet", n.Name, "cidr_block", n.CIDR, "vpc_id", vpc)
		cloud.Put(fields, "availability_zone", &n.Zone)
		p.Create(fields)
		p.Then("subnet made", func(ctx context.Context) error {
			defer a.Forget("subnets")
			vpc, err := n.in(ctx, a)
			if err != nil {
				return err
			}
			in := &ec2.CreateSubnetInput{CidrBlock: &n.CIDR, VpcId: &vpc,
				TagSpecifications: Specs(types.ResourceTypeSubnet, n.Tags, n.Name)}
			if n.Zone != "" {
				in.AvailabilityZone = &n.Zone
			}
			if _, err = EC2Of(a).CreateSubnet(ctx, in); err != nil {
				return cloud.Failed("making subnet", n.Name, err)
			}
			return n.seen(ctx, "subnet", func(ctx context.Context) (bool, error) {
				a.Forget("subnets")
				has, err := n.FindSubnet(ctx, a)
				return has != nil, err
			})
		})
	} else {
		for field, pair := range map[string][2]string{"cidr_block": {sdk.ToString(has.CidrBlock), n.CIDR},
			"availability_zone": {sdk.ToString(has.AvailabilityZone), n.Zone}} {
			if pair[1] != "" && pair[0] != pair[1] {
				p.Warnings = append(p.Warnings, field+" is "+pair[0]+" and cannot be changed")
			}
		}
		n.tagged(p, a, *has.SubnetId, has.Tags)
	}
	public := has != nil && sdk.ToBool(has.MapPublicIpOnLaunch)
	if n.PublicIP != nil && p.Compare("auto_assign_public_ipv4", public, *n.PublicIP) {
		p.Then("public addresses set", func(ctx context.Context) error {
			defer a.Forget("subnets")
			now, err := n.FindSubnet(ctx, a)
			if err != nil || now == nil {
				return errors.Join(err, cloud.Missing("subnet", n.Name, "boto_vpc.subnet_present"))
			}
			_, err = EC2Of(a).ModifySubnetAttribute(ctx, &ec2.ModifySubnetAttributeInput{SubnetId: now.SubnetId,
				MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: n.PublicIP}})
			return cloud.Failed("setting the public addresses of subnet", n.Name, err)
		})
	}
	return n.subnetTable(ctx, p, a, has)
}

// table returns the route table that the arguments name for a subnet, or nil if it does not exist.
func (n *NetResource) table(ctx context.Context, a *cloud.Account) (*types.RouteTable, error) {
	if n.TableID == "" {
		return TableOf(ctx, a, a.Called("route_table", n.Table))
	}
	return routeTable(ctx, a, n.TableID, Filter("route-table-id", n.TableID))
}

// subnetTable plans to associate a subnet with its declared route table.
func (n *NetResource) subnetTable(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.Subnet) error {
	if n.TableID == "" && n.Table == "" {
		return nil
	}
	want, err := n.table(ctx, a)
	if err != nil {
		return err
	}
	id, old := cloud.Later, ""
	switch {
	case want != nil:
		id = sdk.ToString(want.RouteTableId)
	case n.TableID != "" || !a.Expects("route table", a.Called("route_table", n.Table)):
		return cloud.Missing("route table", n.TableID+n.Table, "boto_vpc.route_table_present")
	}
	var association *string
	if has != nil {
		if old, association, err = associated(ctx, a, *has.SubnetId); err != nil {
			return err
		}
	}
	if !p.Compare("route_table_id", old, id) {
		return nil
	}
	p.Then("route table associated", func(ctx context.Context) error { return n.associate(ctx, a, association) })
	return nil
}

// associated returns the ID of the route table of a subnet and the ID of their association. They are "" and nil if the
// subnet uses the main route table of the VPC.
func associated(ctx context.Context, a *cloud.Account, subnet string) (table string, association *string, err error) {
	out, err := EC2Of(a).DescribeRouteTables(ctx,
		&ec2.DescribeRouteTablesInput{Filters: []types.Filter{Filter("association.subnet-id", subnet)}})
	if err != nil {
		return "", nil, cloud.Failed("reading the route table of subnet", subnet, err)
	}
	for _, t := range out.RouteTables {
		for _, s := range t.Associations {
			if sdk.ToString(s.SubnetId) == subnet {
				return sdk.ToString(t.RouteTableId), s.RouteTableAssociationId, nil
			}
		}
	}
	return "", nil, nil
}

// associate associates a subnet with its declared route table, in place of the one before.
func (n *NetResource) associate(ctx context.Context, a *cloud.Account, association *string) error {
	want, err := n.table(ctx, a)
	if err != nil || want == nil {
		return errors.Join(err, cloud.Missing("route table", n.TableID+n.Table, "boto_vpc.route_table_present"))
	}
	if association != nil {
		_, err = EC2Of(a).ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{AssociationId: association,
			RouteTableId: want.RouteTableId})
		return cloud.Failed("giving route table "+n.TableID+n.Table+" to subnet", n.Name, err)
	}
	now, err := n.FindSubnet(ctx, a)
	if err != nil || now == nil {
		return errors.Join(err, cloud.Missing("subnet", n.Name, "boto_vpc.subnet_present"))
	}
	_, err = EC2Of(a).AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: want.RouteTableId,
		SubnetId: now.SubnetId})
	return cloud.Failed("giving route table "+n.TableID+n.Table+" to subnet", n.Name, err)
}
