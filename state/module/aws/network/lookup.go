package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// Filter returns a filter for a request to EC2.
func Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// EC2Of returns a client of EC2.
func EC2Of(a *cloud.Account) *ec2.Client { return ec2.NewFromConfig(a.Client("ec2")) }

// VPCs returns all VPCs of the region.
func VPCs(ctx context.Context, a *cloud.Account) ([]types.Vpc, error) {
	return cloud.Remember(a, "vpcs", func() ([]types.Vpc, error) {
		return cloud.Pages(func(next *string) ([]types.Vpc, *string, error) {
			page, err := EC2Of(a).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the VPCs of", a.Config.Region, err)
			}
			return page.Vpcs, page.NextToken, nil
		})
	})
}

// VPCOf returns the ID of the VPC that is given by its ID or its tag Name, or of the default VPC if both are empty. It
// returns cloud.Later for a VPC that the run makes.
func VPCOf(ctx context.Context, a *cloud.Account, id, name string) (string, error) {
	if id != "" {
		return id, nil
	}
	all, err := VPCs(ctx, a)
	if err != nil {
		return "", err
	}
	name = a.Called("vpc", name)
	has, err := vpcNamed(all, name)
	switch {
	case err != nil:
		return "", err
	case has != nil:
		return sdk.ToString(has.VpcId), nil
	case name == "":
		return "", diag.Resource.Hint(fmt.Errorf("the region %s has no default VPC", a.Config.Region),
			"give vpc_name or vpc_id")
	case a.Expects("vpc", name):
		return cloud.Later, nil
	}
	return "", cloud.Missing("VPC", name, "boto_vpc.present")
}

// vpcNamed returns the VPC with a tag Name, or the default VPC if name is empty, or nil if there is none.
func vpcNamed(all []types.Vpc, name string) (*types.Vpc, error) {
	return cloud.Only("VPC", name, slices.DeleteFunc(slices.Clone(all), func(v types.Vpc) bool {
		return name == "" && !sdk.ToBool(v.IsDefault) || name != "" && NameOf(v.Tags) != name
	}), func(v *types.Vpc) *string { return v.VpcId }, "give vpc_id where the state takes it")
}

// VPCNamed returns the VPC of the region with a tag Name, or nil if there is none.
func VPCNamed(ctx context.Context, a *cloud.Account, name string) (*types.Vpc, error) {
	all, err := VPCs(ctx, a)
	if err != nil || name == "" {
		return nil, err
	}
	return vpcNamed(all, name)
}

// NameOf returns the value of the tag Name, or "" if there is none.
func NameOf(tags []types.Tag) string {
	for _, t := range tags {
		if sdk.ToString(t.Key) == "Name" {
			return sdk.ToString(t.Value)
		}
	}
	return ""
}

// Subnets returns all subnets of the region.
func Subnets(ctx context.Context, a *cloud.Account) ([]types.Subnet, error) {
	return cloud.Remember(a, "subnets", func() ([]types.Subnet, error) {
		return cloud.Pages(func(next *string) ([]types.Subnet, *string, error) {
			page, err := EC2Of(a).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the subnets of", a.Config.Region, err)
			}
			return page.Subnets, page.NextToken, nil
		})
	})
}

// SubnetIDs returns ids and the IDs of the subnets with the given names: cloud.Later for a subnet that the run makes.
func SubnetIDs(ctx context.Context, a *cloud.Account, ids, names []string) ([]string, error) {
	return subnetsIn(ctx, a, "", ids, names)
}

// subnetsIn is like SubnetIDs for names in a VPC, or in any VPC if vpc is empty.
func subnetsIn(ctx context.Context, a *cloud.Account, vpc string, ids, names []string) ([]string, error) {
	ids = slices.Clone(ids)
	for _, name := range names {
		id, err := SubnetIn(ctx, a, vpc, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// SubnetIn returns the ID of the subnet of a VPC, or of any VPC if vpc is empty, with a name. It returns cloud.Later
// for one that the run makes, and an error if several subnets have the name.
func SubnetIn(ctx context.Context, a *cloud.Account, vpc, name string) (string, error) {
	all, err := Subnets(ctx, a)
	if err != nil {
		return "", err
	}
	name = a.Called("subnet", name)
	found := slices.DeleteFunc(slices.Clone(all), func(s types.Subnet) bool {
		return NameOf(s.Tags) != name || vpc != "" && sdk.ToString(s.VpcId) != vpc
	})
	has, err := onlySubnet(name, found, "give the ID of the subnet, or the VPC where the state takes one")
	switch {
	case err != nil:
		return "", err
	case has != nil:
		return sdk.ToString(has.SubnetId), nil
	case a.Expects("subnet", name):
		return cloud.Later, nil
	}
	return "", cloud.Missing("subnet", name, "boto_vpc.subnet_present")
}

func onlySubnet(name string, found []types.Subnet, instead string) (*types.Subnet, error) {
	return cloud.Only("subnet", name, found, func(s *types.Subnet) *string { return s.SubnetId }, instead)
}

// VPCOfSubnets returns the ID of the VPC that subnets are in, or of the default VPC if there are no subnets.
func VPCOfSubnets(ctx context.Context, a *cloud.Account, ids []string) (string, error) {
	if len(ids) == 0 {
		return VPCOf(ctx, a, "", "")
	}
	all, err := Subnets(ctx, a)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if slices.Contains(ids, *s.SubnetId) {
			return *s.VpcId, nil
		}
	}
	if slices.Contains(ids, cloud.Later) {
		return cloud.Later, nil
	}
	return "", cloud.Missing("subnet", strings.Join(ids, ", "), "boto_vpc.subnet_present")
}

// ByName returns the filters for resources with a tag Name.
func ByName(name string) []types.Filter {
	return []types.Filter{{Name: sdk.String("tag:Name"), Values: []string{name}}}
}
