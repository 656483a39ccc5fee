package aws_test

import (
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (s *machines) answerInterfaces(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.CreateNetworkInterfaceInput:
		id := s.id("eni")
		n := &types.NetworkInterface{NetworkInterfaceId: &id, SubnetId: in.SubnetId, Description: in.Description,
			PrivateIpAddress: in.PrivateIpAddress, SourceDestCheck: sdk.Bool(true), TagSet: tagged(in.TagSpecifications)}
		n.Groups = groupsOf(in.Groups)
		s.interfaces[id] = n
		return &ec2.CreateNetworkInterfaceOutput{NetworkInterface: n}, nil
	case *ec2.DescribeNetworkInterfacesInput:
		var list []types.NetworkInterface
		for _, n := range sortedBy(s.interfaces) {
			if matches(in.Filters, n.TagSet, map[string]string{"network-interface-id": *n.NetworkInterfaceId}) {
				list = append(list, *n)
			}
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeNetworkInterfacesOutput{NetworkInterfaces: shown, NextToken: next}, nil
	case *ec2.ModifyNetworkInterfaceAttributeInput:
		n := s.interfaces[*in.NetworkInterfaceId]
		switch {
		case in.Groups != nil:
			n.Groups = groupsOf(in.Groups)
		case in.SourceDestCheck != nil:
			n.SourceDestCheck = in.SourceDestCheck.Value
		case in.Description != nil:
			n.Description = in.Description.Value
		}
		return &ec2.ModifyNetworkInterfaceAttributeOutput{}, nil
	case *ec2.DeleteNetworkInterfaceInput:
		delete(s.interfaces, *in.NetworkInterfaceId)
		return &ec2.DeleteNetworkInterfaceOutput{}, nil
	}
	return nil, nil
}

func groupsOf(ids []string) (all []types.GroupIdentifier) {
	for _, id := range ids {
		all = append(all, types.GroupIdentifier{GroupId: &id})
	}
	return all
}

func (s *machines) answerPrivate(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.AssignPrivateIpAddressesInput:
		n := s.interfaces[*in.NetworkInterfaceId]
		for _, one := range in.PrivateIpAddresses {
			n.PrivateIpAddresses = append(n.PrivateIpAddresses, types.NetworkInterfacePrivateIpAddress{PrivateIpAddress: &one})
		}
		return &ec2.AssignPrivateIpAddressesOutput{}, nil
	case *ec2.UnassignPrivateIpAddressesInput:
		n := s.interfaces[*in.NetworkInterfaceId]
		n.PrivateIpAddresses = slices.DeleteFunc(slices.Clone(n.PrivateIpAddresses),
			func(one types.NetworkInterfacePrivateIpAddress) bool {
				return slices.Contains(in.PrivateIpAddresses, *one.PrivateIpAddress)
			})
		return &ec2.UnassignPrivateIpAddressesOutput{}, nil
	}
	return nil, nil
}

func (s *machines) answerImages(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.CreateImageInput:
		if s.images[*in.Name] != nil {
			return nil, fault("InvalidAMIName.Duplicate")
		}
		id := s.id("ami")
		s.images[*in.Name] = &types.Image{ImageId: &id, Name: in.Name, OwnerId: sdk.String("123456789012"),
			State: types.ImageStateAvailable}
		return &ec2.CreateImageOutput{ImageId: &id}, nil
	case *ec2.DescribeImagesInput:
		out := &ec2.DescribeImagesOutput{}
		for name, one := range s.images {
			if slices.Contains(in.Filters[0].Values, name) && slices.Contains(in.Owners, "self") {
				out.Images = append(out.Images, *one)
			}
		}
		for _, one := range s.theirs {
			if len(in.Owners) == 0 || slices.Contains(in.Owners, *one.OwnerId) {
				out.Images = append(out.Images, one)
			}
		}
		return out, nil
	}
	return nil, nil
}
