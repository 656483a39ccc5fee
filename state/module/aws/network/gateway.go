package network

import (
	"context"
	"errors"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// GatewayOf returns the internet gateway with a name, or nil if there is none.
func GatewayOf(ctx context.Context, a *cloud.Account, name string) (*types.InternetGateway, error) {
	all, err := cloud.Pages(func(next *string) ([]types.InternetGateway, *string, error) {
		page, err := EC2Of(a).DescribeInternetGateways(ctx,
			&ec2.DescribeInternetGatewaysInput{Filters: ByName(name), NextToken: next})
		if err != nil {
			return nil, nil, cloud.Failed("reading internet gateway", name, err)
		}
		return page.InternetGateways, page.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("internet gateway", name, all,
		func(g *types.InternetGateway) *string { return g.InternetGatewayId }, "")
}

func (n *NetResource) gateway(ctx context.Context, p *cloud.Plan, a *cloud.Account) error {
	has, err := GatewayOf(ctx, a, n.Name)
	if err != nil {
		return err
	}
	attached := ""
	if has == nil {
		a.Expect("internet gateway", n.Name)
		p.Create(value.NewMap("internet_gateway", n.Name))
		p.Then("internet gateway made", func(ctx context.Context) error {
			_, err := EC2Of(a).CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{
				TagSpecifications: Specs(types.ResourceTypeInternetGateway, n.Tags, n.Name)})
			if err != nil {
				return cloud.Failed("making internet gateway", n.Name, err)
			}
			return n.seen(ctx, "internet gateway", func(ctx context.Context) (bool, error) {
				has, err := GatewayOf(ctx, a, n.Name)
				return has != nil, err
			})
		})
	} else {
		if len(has.Attachments) > 0 {
			attached = sdk.ToString(has.Attachments[0].VpcId)
		}
		n.tagged(p, a, *has.InternetGatewayId, has.Tags)
	}
	if n.VPCID == "" && n.VPCName == "" {
		return nil
	}
	vpc, err := n.in(ctx, a)
	if err != nil || !p.Compare("vpc_id", attached, vpc) {
		return err
	}
	p.Then("internet gateway attached", func(ctx context.Context) error {
		vpc, err := n.in(ctx, a)
		if err != nil {
			return err
		}
		now, err := GatewayOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, cloud.Missing("internet gateway", n.Name, "boto_vpc.internet_gateway_present"))
		}
		if attached != "" {
			if _, err := EC2Of(a).DetachInternetGateway(ctx,
				&ec2.DetachInternetGatewayInput{InternetGatewayId: now.InternetGatewayId, VpcId: &attached}); err != nil {
				return cloud.Failed("detaching internet gateway", n.Name, err)
			}
		}
		_, err = EC2Of(a).AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: now.InternetGatewayId,
			VpcId: &vpc})
		return cloud.Failed("attaching internet gateway", n.Name, err)
	})
	return nil
}
