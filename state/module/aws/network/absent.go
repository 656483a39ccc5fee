package network

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// netAbsent deletes a VPC, a subnet, an internet gateway or a route table.
type netAbsent struct{ NetResource }

// Check implements module.Resource.
func (n *netAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.Cloud.Account(ctx, "vpc", n.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	id, do, err := n.deletion(ctx, a)
	if do != nil && err == nil {
		p.Remove(id, value.NewMap(n.Kind, n.Name))
		p.Then(n.Kind+" deleted", func(ctx context.Context) error {
			defer a.Forget("")
			return cloud.Failed("deleting "+n.Kind, n.Name, do(ctx))
		})
	}
	return n.Planned(p, err)
}

// deletion returns the ID of the resource and the function that deletes it, or nil if the resource does not exist.
func (n *netAbsent) deletion(ctx context.Context, a *cloud.Account) (string, func(context.Context) error, error) {
	client := EC2Of(a)
	switch n.Kind {
	case "vpc":
		has, err := n.Named(ctx, a)
		if has == nil || err != nil {
			return "", nil, err
		}
		return sdk.ToString(has.VpcId), func(ctx context.Context) error {
			_, err := client.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: has.VpcId})
			return err
		}, nil
	case "subnet":
		has, err := n.FindSubnet(ctx, a)
		if has == nil || err != nil {
			return "", nil, err
		}
		return sdk.ToString(has.SubnetId), func(ctx context.Context) error {
			_, err := client.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: has.SubnetId})
			return err
		}, nil
	case "internet_gateway":
		has, err := GatewayOf(ctx, a, n.Name)
		if has == nil || err != nil {
			return "", nil, err
		}
		return sdk.ToString(has.InternetGatewayId), func(ctx context.Context) error {
			for _, at := range has.Attachments {
				if _, err := client.DetachInternetGateway(ctx,
					&ec2.DetachInternetGatewayInput{InternetGatewayId: has.InternetGatewayId, VpcId: at.VpcId}); err != nil {
					return err
				}
			}
			_, err := client.DeleteInternetGateway(ctx,
				&ec2.DeleteInternetGatewayInput{InternetGatewayId: has.InternetGatewayId})
			return err
		}, nil
	}
	n.Table = n.Name
	has, err := n.table(ctx, a)
	if has == nil || err != nil {
		return "", nil, err
	}
	return sdk.ToString(has.RouteTableId), func(ctx context.Context) error {
		for _, s := range has.Associations {
			if s.SubnetId == nil {
				continue
			}
			if _, err := client.DisassociateRouteTable(ctx,
				&ec2.DisassociateRouteTableInput{AssociationId: s.RouteTableAssociationId}); err != nil {
				return err
			}
		}
		_, err := client.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: has.RouteTableId})
		return err
	}, nil
}
