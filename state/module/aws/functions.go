package aws

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/aws/balancing"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/identity"
	"github.com/corpus-agent/corpus-agent/state/module/aws/messages"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/module/aws/scaling"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// reach has the arguments that select the account, as they are written in the signature of each function.
const reach = ", region=None, key=None, keyid=None, profile=None"

// asked has the functions with which templates read resources of AWS, as methods.
type asked struct{ cloud *cloud.Cloud }

func (q asked) account(ctx context.Context, service, region, key, keyID string, profile any) (*cloud.Account, error) {
	return q.cloud.Account(ctx, service,
		cloud.Arguments{Region: cloud.Region(region), Key: key, KeyID: keyID, Profile: profile})
}

// Reading returns the functions with which templates read resources of AWS, by their names in templates.
func Reading(c *cloud.Cloud) function.Table {
	q := asked{c}
	all := q.questions()
	all.Add(function.Table{
		"boto_secgroup.get_group_id": function.Of("name, vpc_id=None, vpc_name=None"+reach, q.groupID),
		"boto_secgroup.exists": function.Of("name, region=None, key=None, keyid=None, profile=None, vpc_id=None, "+
			"vpc_name=None",
			func(ctx context.Context, name, region, key, keyID string, profile any, vpc, vpcName string) (bool, error) {
				id, err := q.groupID(ctx, name, vpc, vpcName, region, key, keyID, profile)
				return id != nil, err
			}),
		"boto_elb.get_elb_config": function.Of("name"+reach, q.elbConfig),
		"boto_elb.exists": function.Of("name"+reach,
			func(ctx context.Context, name, region, key, keyID string, profile any) (bool, error) {
				m, err := q.elbConfig(ctx, name, region, key, keyID, profile)
				return m.Len() > 0, err
			}),
		"boto_vpc.get_id": function.Of("name=None, cidr=None, tags=None"+reach,
			func(ctx context.Context, name, cidr string, tags *value.Map, region, key, keyID string, profile any) (any, error) {
				all, err := q.vpcs(ctx, "", name, cidr, tags, region, key, keyID, profile)
				if err != nil {
					return nil, err
				}
				has, err := cloud.Only("VPC", name, all, func(v *ec2types.Vpc) *string { return v.VpcId }, "give cidr or tags, too")
				if has == nil || err != nil {
					return value.NewMap("id", nil), err
				}
				return value.NewMap("id", sdk.ToString(has.VpcId)), nil
			}),
		"boto_vpc.exists": function.Of("vpc_id=None, name=None, cidr=None, tags=None"+reach,
			func(ctx context.Context, id, name, cidr string, tags *value.Map, region, key, keyID string,
				profile any) (any, error) {
				all, err := q.vpcs(ctx, id, name, cidr, tags, region, key, keyID, profile)
				return value.NewMap("exists", len(all) > 0), err
			}),
		"boto_vpc.describe_vpcs": function.Of("vpc_id=None, name=None, cidr=None, tags=None"+reach,
			func(ctx context.Context, id, name, cidr string, tags *value.Map, region, key, keyID string,
				profile any) (any, error) {
				all, err := q.vpcs(ctx, id, name, cidr, tags, region, key, keyID, profile)
				list := value.NewList()
				for _, v := range all {
					list.Append(shownVPC(v))
				}
				return value.NewMap("vpcs", list), err
			}),
		"boto_vpc.get_resource_id": function.Of("resource, name"+reach,
			func(ctx context.Context, kind, name, region, key, keyID string, profile any) (*value.Map, error) {
				id, err := q.resourceID(ctx, kind, name, region, key, keyID, profile)
				return value.NewMap("id", id), err
			}),
		"boto_iam.get_account_id": function.Of("region=None, key=None, keyid=None, profile=None", q.accountID),
		"boto_iam.role_exists": q.named("iam", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				all, err := identity.Roles(ctx, a)
				_, there := all[name]
				return there, err
			}),
		"boto_sqs.exists": q.named("sqs", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				url, err := messages.QueueURL(ctx, messages.SQSOf(a), name)
				return url != "", err
			}),
		"boto_sns.get_arn": q.named("sns", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return messages.NameToARN(ctx, a, name)
			}),
		"boto_asg.exists": q.named("asg", "name",
			func(ctx context.Context, a *cloud.Account, name string) (any, error) {
				return is(scaling.Describe(ctx, a, name))
			}),
	})
	return all
}

// groupID returns the ID of a security group, or None if there is none.
func (q asked) groupID(ctx context.Context, name, vpcID, vpcName, region, key, keyID string, profile any) (any, error) {
	a, err := q.account(ctx, "secgroup", region, key, keyID, profile)
	if err != nil {
		return nil, err
	}
	vpc, err := network.VPCOf(ctx, a, vpcID, vpcName)
	if err != nil {
		return nil, err
	}
	group, err := network.GroupOf(ctx, a, vpc, name)
	if group == nil || err != nil {
		return nil, err
	}
	return sdk.ToString(group.GroupId), nil
}

// elbConfig returns the description of a load balancer, or an empty mapping if there is none.
func (q asked) elbConfig(ctx context.Context, name, region, key, keyID string, profile any) (*value.Map, error) {
	a, err := q.account(ctx, "elb", region, key, keyID, profile)
	if err != nil {
		return nil, err
	}
	has, err := balancing.Describe(ctx, a, name)
	if has == nil || err != nil {
		return value.NewMap(), err
	}
	listeners := value.NewList()
	for _, d := range has.ListenerDescriptions {
		m := balancing.ShownListener(*d.Listener)
		m.Set("policies", value.Strings(d.PolicyNames...))
		listeners.Append(m)
	}
	return value.NewMap("dns_name", sdk.ToString(has.DNSName), "canonical_hosted_zone_name",
		sdk.ToString(has.CanonicalHostedZoneName),
		"canonical_hosted_zone_name_id", sdk.ToString(has.CanonicalHostedZoneNameID), "scheme", sdk.ToString(has.Scheme),
		"availability_zones", value.Strings(has.AvailabilityZones...), "subnets", value.Strings(has.Subnets...),
		"security_groups", value.Strings(has.SecurityGroups...), "listeners", listeners, "instances",
		instanceIDs(has.Instances)), nil
}

func instanceIDs(all []types.Instance) *value.List {
	ids := value.NewList()
	for _, i := range all {
		ids.Append(sdk.ToString(i.InstanceId))
	}
	return ids
}

// resourceID returns the ID of a network resource by its kind and name, or None if there is none.
func (q asked) resourceID(ctx context.Context, kind, name, region, key, keyID string, profile any) (any, error) {
	a, err := q.account(ctx, "vpc", region, key, keyID, profile)
	if err != nil {
		return nil, err
	}
	n := network.NetResource{Name: name, Kind: kind}
	var id *string
	switch kind {
	case "vpc":
		has, asking := n.Named(ctx, a)
		if err = asking; has != nil {
			id = has.VpcId
		}
	case "subnet":
		has, asking := n.FindSubnet(ctx, a)
		if err = asking; has != nil {
			id = has.SubnetId
		}
	case "internet_gateway":
		has, asking := network.GatewayOf(ctx, a, name)
		if err = asking; has != nil {
			id = has.InternetGatewayId
		}
	case "route_table":
		has, asking := network.TableOf(ctx, a, name)
		if err = asking; has != nil {
			id = has.RouteTableId
		}
	default:
		return nil, fmt.Errorf("no %s is looked for here: it may be vpc, subnet, internet_gateway or route_table", kind)
	}
	if id == nil || err != nil {
		return nil, err
	}
	return *id, nil
}

// accountID returns the number of the account.
func (q asked) accountID(ctx context.Context, region, key, keyID string, profile any) (string, error) {
	a, err := q.account(ctx, "iam", region, key, keyID, profile)
	if err != nil {
		return "", err
	}
	return cloud.AccountNumber(ctx, a)
}
