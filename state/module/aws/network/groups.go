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

// groups returns all security groups of a VPC.
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

// GroupOf returns the security group of a VPC with a name, or nil if there is none.
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

// groupID returns the ID of a security group that is given by its name or its ID. It returns cloud.Later for a group
// that the run makes.
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

// GroupIDs returns the IDs of security groups that are given by their names or IDs.
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

// groupNames returns the names of security groups. It keeps the IDs of groups that are not in the VPC.
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

// CompareGroups notes the security groups, by name, if they differ, and reports whether they do.
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
