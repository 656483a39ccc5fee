package network

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// groups are all security groups of a VPC.
func groups(ctx context.Context, a *cloud.Account, vpc string) ([]types.SecurityGroup, error) {
	if vpc == cloud.Later {
		return nil, nil
	}
	return cloud.Remember(a, "groups:"+vpc, func() ([]types.SecurityGroup, error) {
		return cloud.Pages(func(next *string) ([]types.SecurityGroup, *string, error) {
			page, err := EC2Of(a).DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{NextToken: next,
				Filters: []types.Filter{{Name: sdk.String("vpc-id"), Values: []string{vpc}}}})
			if err != nil {
				return nil, nil, cloud.Failed("listing the security groups of", vpc, err)
			}
			return page.SecurityGroups, page.NextToken, nil
		})
	})
}

// GroupOf finds a security group of a VPC by its name.
func GroupOf(ctx context.Context, a *cloud.Account, vpc, name string) (*types.SecurityGroup, error) {
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
func groupID(ctx context.Context, a *cloud.Account, vpc, name string) (string, error) {
	if strings.HasPrefix(name, "sg-") {
		return name, nil
	}
	g, err := GroupOf(ctx, a, vpc, name)
	switch {
	case err != nil:
		return "", err
	case g != nil:
		return *g.GroupId, nil
	case a.Expects("secgroup "+vpc, name):
		return cloud.Later, nil
	}
	return "", cloud.Missing("security group", name, "boto_secgroup.present")
}

// GroupIDs are the IDs of security groups.
func GroupIDs(ctx context.Context, a *cloud.Account, vpc string, names []string) (ids []string, err error) {
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
func groupNames(ctx context.Context, a *cloud.Account, vpc string, ids []string) ([]string, error) {
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

// CompareGroups notes security groups that differ, by name.
func CompareGroups(ctx context.Context, p *cloud.Plan, a *cloud.Account, vpc string, has, want []string) (bool, error) {
	old, err := groupNames(ctx, a, vpc, has)
	if err != nil {
		return false, err
	}
	ids, err := GroupIDs(ctx, a, vpc, want)
	if err != nil {
		return false, err
	}
	if value.Equal(cloud.Sorted(has), cloud.Sorted(ids)) {
		return false, nil
	}
	new, err := groupNames(ctx, a, vpc, want)
	if err != nil {
		return false, err
	}
	p.Differ("security_groups", cloud.Sorted(old), cloud.Sorted(new))
	return true, nil
}
