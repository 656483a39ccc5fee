package aws_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// securityGroups imitates the security groups of EC2 in the default VPC and in a VPC named net.
type securityGroups struct {
	all  map[string]*securityGroup // by ID
	made int
	lag  int
}

type securityGroup struct {
	types.SecurityGroup
	unseen lag // reads that do not show the group yet
	used   lag // deletions that are refused because the group is in use
}

func newSecurityGroups(reads int) *securityGroups {
	return &securityGroups{all: map[string]*securityGroup{}, lag: reads}
}

func (s *securityGroups) answer(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeVpcsInput:
		shown, next := page([]types.Vpc{{VpcId: sdk.String("vpc-3")}, {VpcId: sdk.String("vpc-4")},
			{VpcId: sdk.String("vpc-1"), IsDefault: sdk.Bool(true)},
			{VpcId: sdk.String("vpc-2"), Tags: []types.Tag{{Key: sdk.String("Name"), Value: sdk.String("net")}}}}, in.NextToken)
		return &ec2.DescribeVpcsOutput{Vpcs: shown, NextToken: next}, nil
	case *ec2.DescribeSecurityGroupsInput:
		return s.describe(in)
	case *ec2.CreateSecurityGroupInput:
		return s.create(in)
	case *ec2.DeleteSecurityGroupInput:
		if !s.all[*in.GroupId].used.over() {
			return nil, fault("DependencyViolation")
		}
		delete(s.all, *in.GroupId)
		return &ec2.DeleteSecurityGroupOutput{}, nil
	case *ec2.AuthorizeSecurityGroupIngressInput:
		return &ec2.AuthorizeSecurityGroupIngressOutput{}, allow(&s.all[*in.GroupId].IpPermissions, in.IpPermissions)
	case *ec2.AuthorizeSecurityGroupEgressInput:
		return &ec2.AuthorizeSecurityGroupEgressOutput{}, allow(&s.all[*in.GroupId].IpPermissionsEgress, in.IpPermissions)
	case *ec2.RevokeSecurityGroupIngressInput:
		return &ec2.RevokeSecurityGroupIngressOutput{}, revoke(&s.all[*in.GroupId].IpPermissions, in.IpPermissions)
	case *ec2.RevokeSecurityGroupEgressInput:
		return &ec2.RevokeSecurityGroupEgressOutput{}, revoke(&s.all[*in.GroupId].IpPermissionsEgress, in.IpPermissions)
	}
	return answerTags(in, func(id string) *[]types.Tag {
		if g := s.all[id]; g != nil {
			return &g.Tags
		}
		return nil
	})
}

// answerTags changes the tags of a resource. of returns the tags of a resource by ID, or nil if another service has it.
func answerTags(in any, of func(id string) *[]types.Tag) (any, error) {
	switch in := in.(type) {
	case *ec2.CreateTagsInput:
		if tags := of(in.Resources[0]); tags != nil {
			*tags = append(untagged(*tags, in.Tags), in.Tags...)
			return &ec2.CreateTagsOutput{}, nil
		}
	case *ec2.DeleteTagsInput:
		if tags := of(in.Resources[0]); tags != nil {
			*tags = untagged(*tags, in.Tags)
			return &ec2.DeleteTagsOutput{}, nil
		}
	}
	return nil, nil
}

func (s *securityGroups) create(in *ec2.CreateSecurityGroupInput) (any, error) {
	for _, g := range s.all {
		if *g.GroupName == *in.GroupName && *g.VpcId == *in.VpcId {
			return nil, fault("InvalidGroup.Duplicate")
		}
	}
	s.made++
	id := fmt.Sprintf("sg-%03d", s.made)
	g := &securityGroup{SecurityGroup: types.SecurityGroup{GroupId: &id, GroupName: in.GroupName, VpcId: in.VpcId,
		Description: in.Description,
		IpPermissionsEgress: []types.IpPermission{{IpProtocol: sdk.String("-1"),
			IpRanges: []types.IpRange{{CidrIp: sdk.String("0.0.0.0/0")}}}}},
		unseen: lag{s.lag}, used: lag{s.lag}}
	for _, spec := range in.TagSpecifications {
		g.Tags = append(g.Tags, spec.Tags...)
	}
	s.all[id] = g
	return &ec2.CreateSecurityGroupOutput{GroupId: &id}, nil
}

func (s *securityGroups) describe(in *ec2.DescribeSecurityGroupsInput) (any, error) {
	var list []types.SecurityGroup
	for _, id := range in.GroupIds {
		if s.all[id] == nil || !s.all[id].unseen.over() {
			return nil, fault("InvalidGroup.NotFound")
		}
		list = append(list, s.all[id].SecurityGroup)
	}
	for _, f := range in.Filters {
		if *f.Name != "vpc-id" {
			return nil, fault("InvalidParameterValue")
		}
		for _, g := range sortedBy(s.all) {
			if g.unseen.reads == 0 && slices.Contains(f.Values, *g.VpcId) {
				list = append(list, g.SecurityGroup)
			}
		}
	}
	shown, next := page(list, in.NextToken)
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: shown, NextToken: next}, nil
}

func untagged(has, gone []types.Tag) []types.Tag {
	return slices.DeleteFunc(slices.Clone(has), func(t types.Tag) bool {
		return slices.ContainsFunc(gone, func(g types.Tag) bool { return *g.Key == *t.Key })
	})
}

// single splits permissions into permissions with one source each, for comparisons.
func single(permissions []types.IpPermission) (all []types.IpPermission) {
	for _, p := range permissions {
		for _, r := range p.IpRanges {
			all = append(all, types.IpPermission{IpProtocol: p.IpProtocol, FromPort: p.FromPort, ToPort: p.ToPort,
				IpRanges: []types.IpRange{r}})
		}
		for _, r := range p.Ipv6Ranges {
			all = append(all, types.IpPermission{IpProtocol: p.IpProtocol, FromPort: p.FromPort, ToPort: p.ToPort,
				Ipv6Ranges: []types.Ipv6Range{r}})
		}
		for _, r := range p.UserIdGroupPairs {
			if r.UserId == nil {
				r.UserId = sdk.String("123456789012")
			}
			all = append(all, types.IpPermission{IpProtocol: p.IpProtocol, FromPort: p.FromPort, ToPort: p.ToPort,
				UserIdGroupPairs: []types.UserIdGroupPair{r}})
		}
	}
	return all
}

// permissionText describes a permission with one source.
func permissionText(p types.IpPermission) string {
	text := fmt.Sprint(sdk.ToString(p.IpProtocol), " ", sdk.ToInt32(p.FromPort), "-", sdk.ToInt32(p.ToPort))
	for _, r := range p.IpRanges {
		text += " " + sdk.ToString(r.CidrIp)
	}
	for _, r := range p.Ipv6Ranges {
		text += " " + sdk.ToString(r.CidrIpv6)
	}
	for _, r := range p.UserIdGroupPairs {
		text += fmt.Sprint(" ", sdk.ToString(r.GroupId), sdk.ToString(r.GroupName), " of ", sdk.ToString(r.UserId))
	}
	return text
}

func allow(has *[]types.IpPermission, add []types.IpPermission) error {
	var all []types.IpPermission
	for _, p := range single(add) {
		p = stored(p)
		if slices.ContainsFunc(*has, func(o types.IpPermission) bool { return permissionText(o) == permissionText(p) }) {
			return fault("InvalidPermission.Duplicate")
		}
		all = append(all, p)
	}
	*has = append(slices.Clone(*has), all...)
	return nil
}

// stored returns a permission with one source as AWS stores it: names of protocols that AWS has, no ports for others,
// and networks whose other bits are zero.
func stored(p types.IpPermission) types.IpPermission {
	names := map[string]string{"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
	protocol := strings.ToLower(*p.IpProtocol)
	if names[protocol] != "" {
		protocol = names[protocol]
	}
	p.IpProtocol = &protocol
	if !slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6"}, protocol) {
		p.FromPort, p.ToPort = nil, nil
	}
	for i, r := range p.IpRanges {
		p.IpRanges[i].CidrIp = sdk.String(netip.MustParsePrefix(*r.CidrIp).Masked().String())
	}
	for i, r := range p.Ipv6Ranges {
		p.Ipv6Ranges[i].CidrIpv6 = sdk.String(netip.MustParsePrefix(*r.CidrIpv6).Masked().String())
	}
	return p
}

func revoke(has *[]types.IpPermission, drop []types.IpPermission) error {
	for _, p := range single(drop) {
		p = stored(p)
		i := slices.IndexFunc(*has, func(o types.IpPermission) bool { return permissionText(o) == permissionText(p) })
		if i < 0 {
			return fault("InvalidPermission.NotFound")
		}
		*has = slices.Delete(slices.Clone(*has), i, i+1)
	}
	return nil
}
