package aws

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/dns"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// record implements boto_route53.get_record, which returns None if there is no such record.
func (q asked) record() *function.Function {
	return function.Of("name, zone, record_type, fetch_all=False"+reach+
		", split_dns=False, private_zone=False, identifier=None",
		func(ctx context.Context, name, zone, kind string, _ bool, region, key, keyID string, profile any, _, private bool,
			identifier any) (any, error) {
			a, err := q.account(ctx, "route53", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			id, _, err := dns.ZoneOf(ctx, a, zone, private)
			if id == "" || err != nil {
				return nil, err
			}
			set, err := dns.Record{Type: kind, Identifier: identifier}.Find(ctx, a, id, name)
			if set == nil || err != nil {
				return nil, err
			}
			m := dns.RecordFields(*set)
			m.Set("name", strings.TrimSuffix(sdk.ToString(set.Name), "."))
			return m, nil
		})
}

// groupsByName implements boto_secgroup.convert_to_group_ids.
func (q asked) groupsByName() *function.Function {
	return function.Of("groups, vpc_id=None, vpc_name=None"+reach,
		func(ctx context.Context, groups any, vpcID, vpcName, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "secgroup", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			vpc, err := network.VPCOf(ctx, a, vpcID, vpcName)
			if err != nil {
				return nil, err
			}
			ids, err := network.GroupIDs(ctx, a, vpc, cloud.Texts(groups))
			return value.Strings(ids...), err
		})
}

func shownTags(tags []types.Tag) *value.Map {
	m := value.NewMap()
	for _, t := range tags {
		m.Set(sdk.ToString(t.Key), sdk.ToString(t.Value))
	}
	return m
}

// vpcDescription implements boto_vpc.describe.
func (q asked) vpcDescription() *function.Function {
	return function.Of("vpc_id=None, vpc_name=None"+reach,
		func(ctx context.Context, id, name, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			n := network.NetResource{Kind: "vpc", Name: name, VPCID: id}
			has, err := n.Named(ctx, a)
			if has == nil || err != nil {
				return value.NewMap("vpc", nil), err
			}
			return value.NewMap("vpc", shownVPC(*has)), nil
		})
}

// shownVPC returns the properties of a VPC with the names that Salt gives them.
func shownVPC(v types.Vpc) *value.Map {
	return value.NewMap("id", sdk.ToString(v.VpcId), "cidr_block", sdk.ToString(v.CidrBlock),
		"is_default", sdk.ToBool(v.IsDefault), "state", string(v.State), "tags", shownTags(v.Tags),
		"dhcp_options_id", sdk.ToString(v.DhcpOptionsId), "instance_tenancy", string(v.InstanceTenancy))
}

// vpcs returns the VPCs that have all given properties.
func (q asked) vpcs(ctx context.Context, id, name, cidr string, tags *value.Map, region, key, keyID string,
	profile any) ([]types.Vpc, error) {
	a, err := q.account(ctx, "vpc", region, key, keyID, profile)
	if err != nil {
		return nil, err
	}
	all, err := network.VPCs(ctx, a)
	return slices.DeleteFunc(slices.Clone(all), func(v types.Vpc) bool {
		has := shownTags(v.Tags)
		for key, want := range tags.All() {
			if !has.Has(value.Str(key)) || value.Str(has.Value(value.Str(key))) != value.Str(want) {
				return true
			}
		}
		return id != "" && sdk.ToString(v.VpcId) != id || name != "" && network.NameOf(v.Tags) != name ||
			cidr != "" && sdk.ToString(v.CidrBlock) != cidr
	}), err
}

// subnetDescriptions implements boto_vpc.describe_subnets.
func (q asked) subnetDescriptions() *function.Function {
	return function.Of("subnet_ids=None, subnet_names=None, vpc_id=None, cidr=None"+reach,
		func(ctx context.Context, ids, names any, vpc, cidr, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			all, err := network.Subnets(ctx, a)
			list, wantIDs, wantNames := value.NewList(), cloud.Texts(ids), cloud.Texts(names)
			for _, s := range all {
				if len(wantIDs) > 0 && !slices.Contains(wantIDs, sdk.ToString(s.SubnetId)) || vpc != "" &&
					sdk.ToString(s.VpcId) != vpc ||
					len(wantNames) > 0 && !slices.Contains(wantNames, network.NameOf(s.Tags)) || cidr != "" &&
					sdk.ToString(s.CidrBlock) != cidr {
					continue
				}
				list.Append(value.NewMap("id", sdk.ToString(s.SubnetId), "availability_zone", sdk.ToString(s.AvailabilityZone),
					"cidr_block", sdk.ToString(s.CidrBlock), "vpc_id", sdk.ToString(s.VpcId), "tags", shownTags(s.Tags)))
			}
			return value.NewMap("subnets", list), err
		})
}

// network implements boto_vpc.subnet_exists and route_table_exists.
func (q asked) network(kind string) *function.Function {
	return function.Of(kind+"_id=None, name=None, "+kind+"_name=None"+reach,
		func(ctx context.Context, id, name, other, region, key, keyID string, profile any) (any, error) {
			if name == "" {
				name = other
			}
			if id == "" {
				found, err := q.resourceID(ctx, kind, name, region, key, keyID, profile)
				return value.NewMap("exists", found != nil), err
			}
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			if kind == "subnet" {
				all, err := network.Subnets(ctx, a)
				return value.NewMap("exists",
					slices.ContainsFunc(all, func(s types.Subnet) bool { return sdk.ToString(s.SubnetId) == id })), err
			}
			out, err := network.EC2Of(a).DescribeRouteTables(ctx,
				&ec2.DescribeRouteTablesInput{Filters: []types.Filter{network.Filter("route-table-id", id)}})
			return value.NewMap("exists", err == nil && len(out.RouteTables) > 0), cloud.Failed("reading route table", id, err)
		})
}
