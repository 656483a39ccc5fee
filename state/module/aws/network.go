package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func ec2Of(a *account) *ec2.Client { return ec2.NewFromConfig(a.client("ec2")) }

// vpcs are all VPCs of the region.
func vpcs(ctx context.Context, a *account) ([]types.Vpc, error) {
	return remember(a, "vpcs", func() ([]types.Vpc, error) {
		return pages(func(next *string) ([]types.Vpc, *string, error) {
			page, err := ec2Of(a).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the VPCs of", a.config.Region, err)
			}
			return page.Vpcs, page.NextToken, nil
		})
	})
}

// vpcOf is the ID of the VPC that arguments mean: by ID, by its tag Name, or the default one. It is later for a VPC
// that the run makes.
func vpcOf(ctx context.Context, a *account, id, name string) (string, error) {
	if id != "" {
		return id, nil
	}
	all, err := vpcs(ctx, a)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		if name == "" && sdk.ToBool(v.IsDefault) || name != "" && nameOf(v.Tags) == name {
			return *v.VpcId, nil
		}
	}
	switch {
	case name == "":
		return "", diag.WithHint(fmt.Errorf("the region %s has no default VPC", a.config.Region), "give vpc_name or vpc_id")
	case a.expects("vpc", name):
		return later, nil
	}
	return "", missing("VPC", name, "boto_vpc.present")
}

// nameOf returns what the tag Name says.
func nameOf(tags []types.Tag) string {
	for _, t := range tags {
		if sdk.ToString(t.Key) == "Name" {
			return sdk.ToString(t.Value)
		}
	}
	return ""
}

// groups are all security groups of a VPC.
func groups(ctx context.Context, a *account, vpc string) ([]types.SecurityGroup, error) {
	if vpc == later {
		return nil, nil
	}
	return remember(a, "groups:"+vpc, func() ([]types.SecurityGroup, error) {
		return pages(func(next *string) ([]types.SecurityGroup, *string, error) {
			page, err := ec2Of(a).DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{NextToken: next,
				Filters: []types.Filter{{Name: sdk.String("vpc-id"), Values: []string{vpc}}}})
			if err != nil {
				return nil, nil, failed("listing the security groups of", vpc, err)
			}
			return page.SecurityGroups, page.NextToken, nil
		})
	})
}

// groupOf finds a security group of a VPC by its name.
func groupOf(ctx context.Context, a *account, vpc, name string) (*types.SecurityGroup, error) {
	all, err := groups(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(g types.SecurityGroup) bool { return sdk.ToString(g.GroupName) == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, nil
}

// groupID is the ID of a security group, of which an argument has the name or the ID. It is later for one that the run
// makes.
func groupID(ctx context.Context, a *account, vpc, name string) (string, error) {
	if strings.HasPrefix(name, "sg-") {
		return name, nil
	}
	g, err := groupOf(ctx, a, vpc, name)
	switch {
	case err != nil:
		return "", err
	case g != nil:
		return *g.GroupId, nil
	case a.expects("secgroup "+vpc, name):
		return later, nil
	}
	return "", missing("security group", name, "boto_secgroup.present")
}

// groupIDs are the IDs of security groups.
func groupIDs(ctx context.Context, a *account, vpc string, names []string) (ids []string, err error) {
	for _, name := range names {
		id, err := groupID(ctx, a, vpc, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// groupNames are the names of security groups, or the IDs of those that are not in the VPC.
func groupNames(ctx context.Context, a *account, vpc string, ids []string) ([]string, error) {
	all, err := groups(ctx, a, vpc)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(ids)
	for i, id := range ids {
		for _, g := range all {
			if sdk.ToString(g.GroupId) == id {
				names[i] = sdk.ToString(g.GroupName)
			}
		}
	}
	return names, nil
}

// compareGroups notes security groups that differ, by name.
func compareGroups(ctx context.Context, p *plan, a *account, vpc string, has, want []string) (bool, error) {
	old, err := groupNames(ctx, a, vpc, has)
	if err != nil {
		return false, err
	}
	ids, err := groupIDs(ctx, a, vpc, want)
	if err != nil {
		return false, err
	}
	if value.Equal(sorted(has), sorted(ids)) {
		return false, nil
	}
	new, err := groupNames(ctx, a, vpc, want)
	if err != nil {
		return false, err
	}
	p.differ("security_groups", sorted(old), sorted(new))
	return true, nil
}

// subnets are all subnets of the region.
func subnets(ctx context.Context, a *account) ([]types.Subnet, error) {
	return remember(a, "subnets", func() ([]types.Subnet, error) {
		return pages(func(next *string) ([]types.Subnet, *string, error) {
			page, err := ec2Of(a).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the subnets of", a.config.Region, err)
			}
			return page.Subnets, page.NextToken, nil
		})
	})
}

// subnetIDs are the IDs of subnets by their IDs and names.
func subnetIDs(ctx context.Context, a *account, ids, names []string) ([]string, error) {
	ids = slices.Clone(ids)
	if len(names) == 0 {
		return ids, nil
	}
	all, err := subnets(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s types.Subnet) bool { return nameOf(s.Tags) == name })
		switch {
		case i >= 0:
			ids = append(ids, *all[i].SubnetId)
		case a.expects("subnet", name):
			ids = append(ids, later)
		default:
			return nil, missing("subnet", name, "boto_vpc.subnet_present")
		}
	}
	return ids, nil
}

// vpcOfSubnets is the VPC of subnets, or the default one where there are none.
func vpcOfSubnets(ctx context.Context, a *account, ids []string) (string, error) {
	if len(ids) == 0 {
		return vpcOf(ctx, a, "", "")
	}
	all, err := subnets(ctx, a)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if slices.Contains(ids, *s.SubnetId) {
			return *s.VpcId, nil
		}
	}
	if slices.Contains(ids, later) {
		return later, nil
	}
	return "", missing("subnet", strings.Join(ids, ", "), "boto_vpc.subnet_present")
}

// ec2Tags are tags as EC2 takes them.
func ec2Tags(tags *value.Map) (all []types.Tag) {
	for key, v := range tags.All() {
		all = append(all, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	return all
}

// tagDrift notes tags that differ. Tags of AWS's own do not count.
func tagDrift(p *plan, has map[string]string, want *value.Map) (set *value.Map, gone []string) {
	old, new := value.NewMap(), value.NewMap()
	set = value.NewMap()
	for key, v := range want.All() {
		name := value.Str(key)
		new.Set(name, value.Str(v))
		if now, ok := has[name]; !ok || now != value.Str(v) {
			set.Set(name, value.Str(v))
		}
	}
	for _, key := range sorted(keys(has)).Items {
		name := value.Str(key)
		if strings.HasPrefix(name, "aws:") {
			continue
		}
		old.Set(name, has[name])
		if !want.Has(name) {
			gone = append(gone, name)
		}
	}
	if set.Len()+len(gone) > 0 {
		p.differ("tags", old, new)
	}
	return set, gone
}

func keys(m map[string]string) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}

// tagsOf are tags of EC2 as a mapping.
func tagsOf(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return m
}

// tagEC2 plans the tags of a resource of EC2.
func tagEC2(p *plan, a *account, id string, has []types.Tag, want *value.Map) {
	if want == nil {
		return
	}
	set, gone := tagDrift(p, tagsOf(has), want)
	if set.Len() > 0 {
		p.then("tags set", func(ctx context.Context) error {
			_, err := ec2Of(a).CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(set)})
			return failed("tagging", id, err)
		})
	}
	if len(gone) > 0 {
		p.then("tags removed", func(ctx context.Context) error {
			var tags []types.Tag
			for _, key := range gone {
				tags = append(tags, types.Tag{Key: sdk.String(key)})
			}
			_, err := ec2Of(a).DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: tags})
			return failed("removing tags of", id, err)
		})
	}
}

// specs are tags that a resource of EC2 is made with.
func specs(kind types.ResourceType, tags *value.Map, name string) []types.TagSpecification {
	all := value.NewMap()
	if name != "" {
		all.Set("Name", name)
	}
	all.Update(tags)
	if all.Len() == 0 {
		return nil
	}
	return []types.TagSpecification{{ResourceType: kind, Tags: ec2Tags(all)}}
}

// soon is how long what was just made may take to be seen.
const soon = 2 * time.Minute
