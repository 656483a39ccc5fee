package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TableOf returns the route table with a name, or nil if there is none.
func TableOf(ctx context.Context, a *cloud.Account, name string) (*types.RouteTable, error) {
	return routeTable(ctx, a, name, ByName(name)...)
}

// routeTable returns the route table that filters select, or nil if there is none.
func routeTable(ctx context.Context, a *cloud.Account, name string,
	filters ...types.Filter) (*types.RouteTable, error) {
	all, err := cloud.Pages(func(next *string) ([]types.RouteTable, *string, error) {
		page, err := EC2Of(a).DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: filters, NextToken: next})
		if err != nil {
			return nil, nil, cloud.Failed("reading route table", name, err)
		}
		return page.RouteTables, page.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("route table", name, all, func(t *types.RouteTable) *string { return t.RouteTableId },
		"give route_table_id where the state takes it")
}

// route is a destination and the ID of its target: a gateway, an instance, a NAT gateway, a network interface or a
// peering connection.
type route struct{ cidr, gateway, instance, nat, nic, peer string }

// routes returns the declared routes with the IDs of their targets: cloud.Later for a target that the run makes.
func (n *NetResource) routes(ctx context.Context, a *cloud.Account) (all []route, err error) {
	for _, item := range n.Routes {
		m := cloud.MapOf(item)
		cidr, err := destination(item)
		if err != nil {
			return nil, err
		}
		r := route{cidr: cidr, gateway: cloud.Text(m, "gateway_id"),
			instance: cloud.Text(m, "instance_id"),
			nat:      cloud.Text(m, "nat_gateway_id"), nic: cloud.Text(m, "interface_id"),
			peer: cloud.Text(m, "vpc_peering_connection_id")}
		if err := r.resolve(ctx, a, m); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// routeFields returns the fields of a route.
func routeFields() cloud.Fields {
	return cloud.Fields{"destination_cidr_block": cloud.Word, "gateway_id": cloud.Word,
		"internet_gateway_name": cloud.Word, "instance_id": cloud.Word, "interface_id": cloud.Word,
		"nat_gateway_id": cloud.Word, "nat_gateway_subnet_id": cloud.Word, "nat_gateway_subnet_name": cloud.Word,
		"vpc_peering_connection_id": cloud.Word, "vpc_peering_connection_name": cloud.Word}
}

// destination checks a declared route, and returns its destination as AWS stores it.
func destination(item any) (string, error) {
	shown := "the route " + value.Repr(item)
	if err := routeFields().Check(shown, item); err != nil {
		return "", err
	}
	given := cloud.Text(cloud.MapOf(item), "destination_cidr_block")
	if given == "" {
		return "", diag.Amazon.Hint(errors.New(shown+" lacks destination_cidr_block"), "give it")
	}
	return ipv4("destination_cidr_block of "+shown, given)
}

// ipv4 returns a network of IPv4 as AWS stores it. what names it in errors.
func ipv4(what, given string) (string, error) {
	network, err := cloud.Network(given)
	if err != nil {
		return "", diag.Amazon.Hint(fmt.Errorf("%s: %w", what, err), "%s", diag.HintOf(err))
	}
	if strings.Contains(network, ":") {
		return "", diag.Amazon.Hint(fmt.Errorf("%s is %s, a network of IPv6", what, network), "give one of IPv4, as in Salt")
	}
	return network, nil
}

// resolve sets the ID of the target that a route names: cloud.Later for a target that the run makes.
func (r *route) resolve(ctx context.Context, a *cloud.Account, m *value.Map) error {
	found := func(to *string, kind, name, state string, id *string, err error) error {
		switch {
		case err != nil:
			return err
		case id != nil:
			*to = *id
		case a.Expects(kind, name):
			*to = cloud.Later
		default:
			return cloud.Missing(kind, name, state)
		}
		return nil
	}
	if name := a.Called("internet_gateway", cloud.Text(m, "internet_gateway_name")); name != "" {
		g, err := GatewayOf(ctx, a, name)
		if g == nil {
			g = &types.InternetGateway{}
		}
		return found(&r.gateway, "internet gateway", name, "boto_vpc.internet_gateway_present", g.InternetGatewayId, err)
	}
	if name := cloud.Text(m, "vpc_peering_connection_name"); name != "" {
		c, err := (&peering{ConnName: name}).find(ctx, a)
		if c == nil {
			c = &types.VpcPeeringConnection{}
		}
		return found(&r.peer, "peering", name, "boto_vpc.vpc_peering_connection_present", c.VpcPeeringConnectionId, err)
	}
	id, name := cloud.Text(m, "nat_gateway_subnet_id"), cloud.Text(m, "nat_gateway_subnet_name")
	if id+name == "" {
		return nil
	}
	subnet, err := subnetOf(ctx, a, id, name)
	if err != nil {
		return err
	}
	nat, err := natOf(ctx, a, subnet, "pending", "available")
	if nat == nil {
		nat = &types.NatGateway{}
	}
	return found(&r.nat, "nat gateway", id+name, "boto_vpc.nat_gateway_present", nat.NatGatewayId, err)
}

func shownRoutes(all []route) *value.Map {
	m := value.NewMap()
	slices.SortFunc(all, func(a, b route) int { return compareText(a.cidr, b.cidr) })
	for _, r := range all {
		m.Set(r.cidr, r.gateway+r.instance+r.nat+r.nic+r.peer)
	}
	return m
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (n *NetResource) routeTable(ctx context.Context, p *cloud.Plan, a *cloud.Account) error {
	has, err := TableOf(ctx, a, n.Name)
	if err != nil {
		return err
	}
	if has == nil {
		vpc, err := n.in(ctx, a)
		if err != nil {
			return err
		}
		a.Expect("route table", n.Name)
		p.Create(value.NewMap("route_table", n.Name, "vpc_id", vpc))
		p.Then("route table made", func(ctx context.Context) error {
			vpc, err := n.in(ctx, a)
			if err != nil {
				return err
			}
			_, err = EC2Of(a).CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &vpc,
				TagSpecifications: Specs(types.ResourceTypeRouteTable, n.Tags, n.Name)})
			if err != nil {
				return cloud.Failed("making route table", n.Name, err)
			}
			return n.seen(ctx, "route table", func(ctx context.Context) (bool, error) {
				has, err := TableOf(ctx, a, n.Name)
				return has != nil, err
			})
		})
		has = &types.RouteTable{}
	} else {
		n.tagged(p, a, *has.RouteTableId, has.Tags)
	}
	if err := n.tableRoutes(ctx, p, a, has); err != nil {
		return err
	}
	return n.tableSubnets(ctx, p, a, has)
}

func (n *NetResource) tableRoutes(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.RouteTable) error {
	if n.Routes == nil {
		return nil
	}
	want, err := n.routes(ctx, a)
	if err != nil {
		return err
	}
	var old []route
	for _, r := range has.Routes {
		if sdk.ToString(r.GatewayId) != "local" && r.DestinationCidrBlock != nil {
			one := route{cidr: *r.DestinationCidrBlock, gateway: sdk.ToString(r.GatewayId), instance: sdk.ToString(r.InstanceId),
				nat: sdk.ToString(r.NatGatewayId), nic: sdk.ToString(r.NetworkInterfaceId),
				peer: sdk.ToString(r.VpcPeeringConnectionId)}
			if one.instance != "" { // AWS also returns the interface of the instance
				one.nic = ""
			}
			old = append(old, one)
		}
	}
	if !p.Compare("routes", shownRoutes(old), shownRoutes(want)) {
		return nil
	}
	p.Then("routes set", func(ctx context.Context) error {
		now, err := TableOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, cloud.Missing("route table", n.Name, "boto_vpc.route_table_present"))
		}
		want, err := n.routes(ctx, a)
		if err != nil {
			return err
		}
		for _, r := range old {
			if slices.Contains(want, r) {
				continue
			}
			if _, err := EC2Of(a).DeleteRoute(ctx,
				&ec2.DeleteRouteInput{RouteTableId: now.RouteTableId, DestinationCidrBlock: &r.cidr}); err != nil {
				return cloud.Failed("deleting a route of table", n.Name, err)
			}
		}
		for _, r := range want {
			if slices.Contains(old, r) {
				continue
			}
			in := &ec2.CreateRouteInput{RouteTableId: now.RouteTableId, DestinationCidrBlock: &r.cidr}
			for field, v := range map[**string]string{&in.GatewayId: r.gateway, &in.InstanceId: r.instance,
				&in.NatGatewayId: r.nat, &in.NetworkInterfaceId: r.nic, &in.VpcPeeringConnectionId: r.peer} {
				if v != "" {
					*field = &v
				}
			}
			if _, err := EC2Of(a).CreateRoute(ctx, in); err != nil {
				return cloud.Failed("making a route of table", n.Name, err)
			}
		}
		return nil
	})
	return nil
}

// wantedSubnets returns the IDs of the declared subnets of the route table. Names are those of subnets of its VPC.
func (n *NetResource) wantedSubnets(ctx context.Context, a *cloud.Account) ([]string, error) {
	vpc, err := n.givenVPC(ctx, a)
	if err != nil {
		return nil, err
	}
	return subnetsIn(ctx, a, vpc, n.SubnetIDs, n.Subnets)
}

func (n *NetResource) tableSubnets(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.RouteTable) error {
	if n.SubnetIDs == nil && n.Subnets == nil {
		return nil
	}
	want, err := n.wantedSubnets(ctx, a)
	if err != nil {
		return err
	}
	var old []string
	associations := map[string]string{}
	for _, s := range has.Associations {
		if id := sdk.ToString(s.SubnetId); id != "" {
			old = append(old, id)
			associations[id] = sdk.ToString(s.RouteTableAssociationId)
		}
	}
	if !p.Compare("subnets", cloud.Sorted(old), cloud.Sorted(want)) {
		return nil
	}
	p.Then("subnets associated", func(ctx context.Context) error {
		now, err := TableOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, cloud.Missing("route table", n.Name, "boto_vpc.route_table_present"))
		}
		want, err := n.wantedSubnets(ctx, a)
		if err != nil {
			return err
		}
		add, drop := cloud.Apart(old, want)
		for _, id := range drop {
			association := associations[id]
			if _, err := EC2Of(a).DisassociateRouteTable(ctx,
				&ec2.DisassociateRouteTableInput{AssociationId: &association}); err != nil {
				return cloud.Failed("removing a subnet from route table", n.Name, err)
			}
		}
		for _, id := range add {
			if _, err := EC2Of(a).AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: now.RouteTableId,
				SubnetId: &id}); err != nil {
				return cloud.Failed("giving a subnet route table", n.Name, err)
			}
		}
		return nil
	})
	return nil
}
