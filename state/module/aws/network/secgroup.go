package network

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// SecgroupTable returns the state functions of boto_secgroup.
func SecgroupTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &secgroupPresent{namedGroup: namedGroup{Common: cloud.Common{Cloud: c}}}
		},
		"absent": func() module.Resource { return &secgroupAbsent{namedGroup: namedGroup{Common: cloud.Common{Cloud: c}}} },
	}
}

// namedGroup selects a security group by its name in a VPC.
type namedGroup struct {
	cloud.Common
	Name    string `sls:"name"`
	VPCID   string `sls:"vpc_id"`
	VPCName string `sls:"vpc_name"`
}

// find returns the account and the VPC of a group, and the group, or nil if there is none.
func (g *namedGroup) find(ctx context.Context) (a *cloud.Account, vpc string, group *types.SecurityGroup, err error) {
	if a, err = g.Cloud.Account(ctx, "secgroup", g.Arguments); err != nil {
		return nil, "", nil, err
	}
	if vpc, err = VPCOf(ctx, a, g.VPCID, g.VPCName); err != nil {
		return nil, "", nil, err
	}
	group, err = GroupOf(ctx, a, vpc, g.Name)
	return a, vpc, group, err
}

// secgroupPresent implements boto_secgroup.present: a security group with its rules and tags.
type secgroupPresent struct {
	namedGroup
	Description string     `sls:"description,required"`
	Rules       any        `sls:"rules"`
	Egress      any        `sls:"rules_egress"`
	Tags        *value.Map `sls:"tags"`
	DeleteIn    *bool      `sls:"delete_ingress_rules"`
	DeleteOut   *bool      `sls:"delete_egress_rules"`
}

// RunsBeside implements module.Concurrent.
func (*secgroupPresent) RunsBeside() {}

// Valid implements module.Validated.
func (s *secgroupPresent) Valid() error {
	for _, list := range []any{s.Rules, s.Egress} {
		if _, err := parseRules(list); err != nil {
			return err
		}
	}
	return nil
}

// Check implements module.Resource.
func (s *secgroupPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *secgroupPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, vpc, group, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	if group == nil {
		a.Expect("secgroup "+vpc, s.Name)
		s.create(p, a)
		group = &types.SecurityGroup{VpcId: &vpc}
	} else if old := sdk.ToString(group.Description); old != s.Description {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the description is %q and cannot be changed", old))
	}
	for _, d := range []direction{{field: "rules", want: s.Rules, has: group.IpPermissions, keep: s.DeleteIn},
		{field: "rules_egress", want: s.Egress, has: group.IpPermissionsEgress, keep: s.DeleteOut, egress: true}} {
		if p.Made && d.egress { // a new group allows all outgoing traffic
			d.has = []types.IpPermission{{IpProtocol: sdk.String("-1"),
				IpRanges: []types.IpRange{{CidrIp: sdk.String("0.0.0.0/0")}}}}
		}
		if err := s.rules(ctx, p, a, vpc, d); err != nil {
			return nil, err
		}
	}
	if !p.Made {
		TagEC2(p, a, sdk.ToString(group.GroupId), group.Tags, s.Tags)
	}
	return p, nil
}

// create plans to make the group.
func (s *secgroupPresent) create(p *cloud.Plan, a *cloud.Account) {
	fields := value.NewMap("secgroup", s.Name, "description", s.Description)
	if s.VPCName != "" {
		fields.Set("vpc_name", s.VPCName)
	}
	if s.Tags != nil {
		fields.Set("tags", s.Tags)
	}
	p.Create(fields)
	p.Then("security group made", func(ctx context.Context) error {
		vpc, err := VPCOf(ctx, a, s.VPCID, s.VPCName)
		if err != nil {
			return err
		}
		out, err := EC2Of(a).CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: &s.Name, VpcId: &vpc,
			Description: &s.Description, TagSpecifications: Specs(types.ResourceTypeSecurityGroup, s.Tags, "")})
		a.Forget("groups:")
		if err != nil {
			return cloud.Failed("making security group", s.Name, err)
		}
		return cloud.WaitFor(ctx, "security group "+s.Name+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
			_, err := EC2Of(a).DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{*out.GroupId}})
			if cloud.HasCode(err, "InvalidGroup.NotFound", "InvalidGroupId.NotFound") {
				return false, nil
			}
			if err != nil {
				return false, cloud.Failed("reading security group", s.Name, err)
			}
			a.Forget("groups:" + vpc) // others look for the group in the list of its VPC
			has, err := GroupOf(ctx, a, vpc, s.Name)
			return has != nil, err
		})
	})
}

// secgroupAbsent implements boto_secgroup.absent.
type secgroupAbsent struct {
	namedGroup
}

// Check implements module.Resource.
func (s *secgroupAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *secgroupAbsent) look(ctx context.Context) (*cloud.Plan, error) {
	a, _, group, err := s.find(ctx)
	p := cloud.NewPlan()
	if cloud.IsMissing(err) {
		return p, nil // without its VPC there is no group
	}
	if group == nil || err != nil {
		return p, err
	}
	p.Remove(sdk.ToString(group.GroupId), value.NewMap("secgroup", s.Name))
	p.Then("security group deleted", func(ctx context.Context) error {
		defer a.Forget("groups:")
		return cloud.WaitFor(ctx, "nothing uses security group "+s.Name, cloud.Soon, func(ctx context.Context) (bool, error) {
			_, err := EC2Of(a).DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: group.GroupId})
			if cloud.HasCode(err, "DependencyViolation") { // a resource that is being deleted may still use the group
				return false, nil
			}
			return err == nil, cloud.Failed("deleting security group", s.Name, err)
		})
	})
	return p, nil
}
