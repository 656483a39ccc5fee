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

// networks imitates VPCs and their parts. The creation and the deletion of a NAT gateway take some reads.
type networks struct {
	vpcs     map[string]*network
	subnets  map[string]*types.Subnet
	gateways map[string]*types.InternetGateway
	tables   map[string]*types.RouteTable
	nats     map[string]*natGateway
	options  map[string]*types.DhcpOptions
	peers    map[string]*types.VpcPeeringConnection
	made     int
	lag      int
}

type network struct {
	types.Vpc
	support, names bool
}

type natGateway struct {
	types.NatGateway
	changes lag
}

// newNetworks returns the networks of an account that has only the default VPC.
func newNetworks(reads int) *networks {
	s := &networks{vpcs: map[string]*network{}, subnets: map[string]*types.Subnet{},
		gateways: map[string]*types.InternetGateway{},
		tables:   map[string]*types.RouteTable{}, nats: map[string]*natGateway{}, options: map[string]*types.DhcpOptions{},
		peers: map[string]*types.VpcPeeringConnection{}, lag: reads}
	s.vpcs["vpc-1"] = &network{Vpc: types.Vpc{VpcId: sdk.String("vpc-1"), IsDefault: sdk.Bool(true),
		DhcpOptionsId: sdk.String("default")}}
	return s
}

func (s *networks) id(kind string) string {
	s.made++
	return fmt.Sprintf("%s-n%03d", kind, s.made)
}

// storedNetwork returns a network as AWS stores it: the bits after its prefix are zero.
func storedNetwork(cidr *string) *string {
	return sdk.String(netip.MustParsePrefix(*cidr).Masked().String())
}

// tagged returns the tags of a new resource.
func tagged(specs []types.TagSpecification) (tags []types.Tag) {
	for _, spec := range specs {
		tags = append(tags, spec.Tags...)
	}
	return tags
}

// matches reports whether a resource passes all filters. of has its properties by the names of filters.
func matches(filters []types.Filter, tags []types.Tag, of map[string]string) bool {
	return !slices.ContainsFunc(filters, func(f types.Filter) bool {
		if key, ok := strings.CutPrefix(*f.Name, "tag:"); ok {
			return !slices.ContainsFunc(tags, func(t types.Tag) bool {
				return *t.Key == key && slices.Contains(f.Values, *t.Value)
			})
		}
		has, known := of[*f.Name]
		return !known || !slices.Contains(f.Values, has)
	})
}

func (s *networks) answer(in any) (any, error) {
	for _, part := range []func(any) (any, error){s.answerVPCs, s.answerSubnets, s.answerGateways, s.answerTables,
		s.answerNAT, s.answerOptions, s.answerPeers} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return answerTags(in, s.tagsOf)
}

func (s *networks) tagsOf(id string) *[]types.Tag {
	switch {
	case s.vpcs[id] != nil:
		return &s.vpcs[id].Tags
	case s.subnets[id] != nil:
		return &s.subnets[id].Tags
	case s.gateways[id] != nil:
		return &s.gateways[id].Tags
	case s.tables[id] != nil:
		return &s.tables[id].Tags
	case s.options[id] != nil:
		return &s.options[id].Tags
	}
	return nil
}

func (s *networks) answerVPCs(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeVpcsInput:
		var list []types.Vpc
		for _, v := range sortedBy(s.vpcs) {
			list = append(list, v.Vpc)
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeVpcsOutput{Vpcs: shown, NextToken: next}, nil
	case *ec2.CreateVpcInput:
		id := s.id("vpc")
		s.vpcs[id] = &network{Vpc: types.Vpc{VpcId: &id, CidrBlock: storedNetwork(in.CidrBlock),
			InstanceTenancy: in.InstanceTenancy,
			Tags:            tagged(in.TagSpecifications), DhcpOptionsId: sdk.String("default")}, support: true}
		return &ec2.CreateVpcOutput{Vpc: &s.vpcs[id].Vpc}, nil
	case *ec2.DeleteVpcInput:
		for _, n := range s.subnets {
			if *n.VpcId == *in.VpcId {
				return nil, fault("DependencyViolation")
			}
		}
		delete(s.vpcs, *in.VpcId)
		return &ec2.DeleteVpcOutput{}, nil
	case *ec2.DescribeVpcAttributeInput:
		v := s.vpcs[*in.VpcId]
		return &ec2.DescribeVpcAttributeOutput{EnableDnsSupport: &types.AttributeBooleanValue{Value: sdk.Bool(v.support)},
			EnableDnsHostnames: &types.AttributeBooleanValue{Value: sdk.Bool(v.names)}}, nil
	case *ec2.ModifyVpcAttributeInput:
		v := s.vpcs[*in.VpcId]
		if (in.EnableDnsSupport == nil) == (in.EnableDnsHostnames == nil) {
			return nil, fault("InvalidParameterCombination")
		}
		if in.EnableDnsSupport != nil {
			v.support = *in.EnableDnsSupport.Value
		} else {
			v.names = *in.EnableDnsHostnames.Value
		}
		return &ec2.ModifyVpcAttributeOutput{}, nil
	}
	return nil, nil
}

func (s *networks) answerSubnets(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeSubnetsInput:
		var list []types.Subnet
		for _, n := range sortedBy(s.subnets) {
			list = append(list, *n)
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeSubnetsOutput{Subnets: shown, NextToken: next}, nil
	case *ec2.CreateSubnetInput:
		if s.vpcs[*in.VpcId] == nil {
			return nil, fault("InvalidVpcID.NotFound")
		}
		id := s.id("subnet")
		zone := in.AvailabilityZone
		if zone == nil {
			zone = sdk.String("us-east-1a")
		}
		s.subnets[id] = &types.Subnet{SubnetId: &id, VpcId: in.VpcId, CidrBlock: storedNetwork(in.CidrBlock),
			AvailabilityZone: zone,
			Tags:             tagged(in.TagSpecifications)}
		return &ec2.CreateSubnetOutput{Subnet: s.subnets[id]}, nil
	case *ec2.ModifySubnetAttributeInput:
		s.subnets[*in.SubnetId].MapPublicIpOnLaunch = in.MapPublicIpOnLaunch.Value
		return &ec2.ModifySubnetAttributeOutput{}, nil
	case *ec2.DeleteSubnetInput:
		delete(s.subnets, *in.SubnetId)
		return &ec2.DeleteSubnetOutput{}, nil
	}
	return nil, nil
}

func (s *networks) answerGateways(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeInternetGatewaysInput:
		var list []types.InternetGateway
		for _, g := range sortedBy(s.gateways) {
			if matches(in.Filters, g.Tags, nil) {
				list = append(list, *g)
			}
		}
		return &ec2.DescribeInternetGatewaysOutput{InternetGateways: list}, nil
	case *ec2.CreateInternetGatewayInput:
		id := s.id("igw")
		s.gateways[id] = &types.InternetGateway{InternetGatewayId: &id, Tags: tagged(in.TagSpecifications)}
		return &ec2.CreateInternetGatewayOutput{InternetGateway: s.gateways[id]}, nil
	case *ec2.AttachInternetGatewayInput:
		if len(s.gateways[*in.InternetGatewayId].Attachments) > 0 {
			return nil, fault("Resource.AlreadyAssociated")
		}
		s.gateways[*in.InternetGatewayId].Attachments = []types.InternetGatewayAttachment{{VpcId: in.VpcId}}
		return &ec2.AttachInternetGatewayOutput{}, nil
	case *ec2.DetachInternetGatewayInput:
		s.gateways[*in.InternetGatewayId].Attachments = nil
		return &ec2.DetachInternetGatewayOutput{}, nil
	case *ec2.DeleteInternetGatewayInput:
		if len(s.gateways[*in.InternetGatewayId].Attachments) > 0 {
			return nil, fault("DependencyViolation")
		}
		delete(s.gateways, *in.InternetGatewayId)
		return &ec2.DeleteInternetGatewayOutput{}, nil
	}
	return nil, nil
}

func (s *networks) answerTables(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeRouteTablesInput:
		var list []types.RouteTable
		for _, t := range sortedBy(s.tables) {
			of := map[string]string{"route-table-id": *t.RouteTableId}
			alone := []types.RouteTableAssociation{{}}
			if len(t.Associations) > 0 {
				alone = t.Associations
			}
			if slices.ContainsFunc(alone, func(a types.RouteTableAssociation) bool {
				of["association.subnet-id"] = sdk.ToString(a.SubnetId)
				return matches(in.Filters, t.Tags, of)
			}) {
				list = append(list, *t)
			}
		}
		return &ec2.DescribeRouteTablesOutput{RouteTables: list}, nil
	case *ec2.CreateRouteTableInput:
		id := s.id("rtb")
		s.tables[id] = &types.RouteTable{RouteTableId: &id, VpcId: in.VpcId, Tags: tagged(in.TagSpecifications),
			Routes: []types.Route{{DestinationCidrBlock: s.vpcs[*in.VpcId].CidrBlock, GatewayId: sdk.String("local")}}}
		return &ec2.CreateRouteTableOutput{RouteTable: s.tables[id]}, nil
	case *ec2.DeleteRouteTableInput:
		if len(s.tables[*in.RouteTableId].Associations) > 0 {
			return nil, fault("DependencyViolation")
		}
		delete(s.tables, *in.RouteTableId)
		return &ec2.DeleteRouteTableOutput{}, nil
	case *ec2.CreateRouteInput:
		t := s.tables[*in.RouteTableId]
		in.DestinationCidrBlock = storedNetwork(in.DestinationCidrBlock)
		if slices.ContainsFunc(t.Routes, func(r types.Route) bool {
			return *r.DestinationCidrBlock == *in.DestinationCidrBlock
		}) {
			return nil, fault("RouteAlreadyExists")
		}
		t.Routes = append(slices.Clone(t.Routes), types.Route{DestinationCidrBlock: in.DestinationCidrBlock,
			GatewayId: in.GatewayId, InstanceId: in.InstanceId,
			NatGatewayId: in.NatGatewayId, NetworkInterfaceId: in.NetworkInterfaceId,
			VpcPeeringConnectionId: in.VpcPeeringConnectionId})
		return &ec2.CreateRouteOutput{}, nil
	case *ec2.DeleteRouteInput:
		t := s.tables[*in.RouteTableId]
		t.Routes = slices.DeleteFunc(slices.Clone(t.Routes),
			func(r types.Route) bool { return *r.DestinationCidrBlock == *in.DestinationCidrBlock })
		return &ec2.DeleteRouteOutput{}, nil
	case *ec2.AssociateRouteTableInput:
		for _, t := range s.tables {
			if slices.ContainsFunc(t.Associations, func(a types.RouteTableAssociation) bool {
				return *a.SubnetId == *in.SubnetId
			}) {
				return nil, fault("Resource.AlreadyAssociated")
			}
		}
		id := s.id("rtbassoc")
		t := s.tables[*in.RouteTableId]
		t.Associations = append(slices.Clone(t.Associations), types.RouteTableAssociation{RouteTableAssociationId: &id,
			SubnetId: in.SubnetId})
		return &ec2.AssociateRouteTableOutput{AssociationId: &id}, nil
	case *ec2.DisassociateRouteTableInput:
		s.dissociate(*in.AssociationId)
		return &ec2.DisassociateRouteTableOutput{}, nil
	case *ec2.ReplaceRouteTableAssociationInput:
		t, subnet := s.tables[*in.RouteTableId], s.dissociate(*in.AssociationId)
		id := s.id("rtbassoc")
		t.Associations = append(slices.Clone(t.Associations), types.RouteTableAssociation{RouteTableAssociationId: &id,
			SubnetId: subnet})
		return &ec2.ReplaceRouteTableAssociationOutput{NewAssociationId: &id}, nil
	}
	return nil, nil
}

// dissociate removes an association from its route table, and returns the ID of the subnet.
func (s *networks) dissociate(association string) (subnet *string) {
	for _, t := range s.tables {
		t.Associations = slices.DeleteFunc(slices.Clone(t.Associations), func(a types.RouteTableAssociation) bool {
			if *a.RouteTableAssociationId == association {
				subnet = a.SubnetId
			}
			return *a.RouteTableAssociationId == association
		})
	}
	return subnet
}

func (s *networks) answerNAT(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.AllocateAddressInput:
		return &ec2.AllocateAddressOutput{AllocationId: sdk.String(s.id("eipalloc"))}, nil
	case *ec2.DescribeNatGatewaysInput:
		var list []types.NatGateway
		for id, n := range s.nats {
			over := n.changes.over()
			switch {
			case over && n.State == types.NatGatewayStateDeleting:
				delete(s.nats, id)
				continue
			case over:
				n.State = types.NatGatewayStateAvailable
			}
			if matches(in.Filter, nil, map[string]string{"subnet-id": *n.SubnetId, "state": string(n.State)}) {
				list = append(list, n.NatGateway)
			}
		}
		return &ec2.DescribeNatGatewaysOutput{NatGateways: list}, nil
	case *ec2.CreateNatGatewayInput:
		if in.AllocationId == nil {
			return nil, fault("MissingParameter")
		}
		id := s.id("nat")
		s.nats[id] = &natGateway{NatGateway: types.NatGateway{NatGatewayId: &id, SubnetId: in.SubnetId,
			State: types.NatGatewayStatePending}, changes: lag{s.lag}}
		return &ec2.CreateNatGatewayOutput{}, nil
	case *ec2.DeleteNatGatewayInput:
		n := s.nats[*in.NatGatewayId]
		n.State, n.changes = types.NatGatewayStateDeleting, lag{s.lag}
		return &ec2.DeleteNatGatewayOutput{}, nil
	}
	return nil, nil
}

func (s *networks) answerOptions(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeDhcpOptionsInput:
		var list []types.DhcpOptions
		for _, o := range sortedBy(s.options) {
			if matches(in.Filters, o.Tags, map[string]string{"dhcp-options-id": *o.DhcpOptionsId}) {
				list = append(list, *o)
			}
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeDhcpOptionsOutput{DhcpOptions: shown, NextToken: next}, nil
	case *ec2.CreateDhcpOptionsInput:
		id := s.id("dopt")
		o := &types.DhcpOptions{DhcpOptionsId: &id, Tags: tagged(in.TagSpecifications)}
		for _, c := range in.DhcpConfigurations {
			one := types.DhcpConfiguration{Key: c.Key}
			for _, v := range c.Values {
				one.Values = append(one.Values, types.AttributeValue{Value: &v})
			}
			o.DhcpConfigurations = append(o.DhcpConfigurations, one)
		}
		s.options[id] = o
		return &ec2.CreateDhcpOptionsOutput{DhcpOptions: o}, nil
	case *ec2.AssociateDhcpOptionsInput:
		if s.vpcs[*in.VpcId] == nil {
			return nil, fault("InvalidVpcID.NotFound")
		}
		s.vpcs[*in.VpcId].DhcpOptionsId = in.DhcpOptionsId
		return &ec2.AssociateDhcpOptionsOutput{}, nil
	case *ec2.DeleteDhcpOptionsInput:
		for _, v := range s.vpcs {
			if *v.DhcpOptionsId == *in.DhcpOptionsId {
				return nil, fault("DependencyViolation")
			}
		}
		delete(s.options, *in.DhcpOptionsId)
		return &ec2.DeleteDhcpOptionsOutput{}, nil
	}
	return nil, nil
}

func (s *networks) answerPeers(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeVpcPeeringConnectionsInput:
		var list []types.VpcPeeringConnection
		for _, p := range sortedBy(s.peers) {
			if matches(in.Filters, p.Tags, map[string]string{"vpc-peering-connection-id": *p.VpcPeeringConnectionId,
				"status-code":               string(p.Status.Code),
				"requester-vpc-info.vpc-id": *p.RequesterVpcInfo.VpcId, "accepter-vpc-info.vpc-id": *p.AccepterVpcInfo.VpcId}) {
				list = append(list, *p)
			}
		}
		shown, next := page(list, in.NextToken)
		return &ec2.DescribeVpcPeeringConnectionsOutput{VpcPeeringConnections: shown, NextToken: next}, nil
	case *ec2.CreateVpcPeeringConnectionInput:
		id := s.id("pcx")
		s.peers[id] = &types.VpcPeeringConnection{VpcPeeringConnectionId: &id, Tags: tagged(in.TagSpecifications),
			RequesterVpcInfo: &types.VpcPeeringConnectionVpcInfo{VpcId: in.VpcId},
			AccepterVpcInfo:  &types.VpcPeeringConnectionVpcInfo{VpcId: in.PeerVpcId},
			Status: &types.VpcPeeringConnectionStateReason{
				Code: types.VpcPeeringConnectionStateReasonCodePendingAcceptance}}
		return &ec2.CreateVpcPeeringConnectionOutput{VpcPeeringConnection: s.peers[id]}, nil
	case *ec2.AcceptVpcPeeringConnectionInput:
		s.peers[*in.VpcPeeringConnectionId].Status = &types.VpcPeeringConnectionStateReason{
			Code: types.VpcPeeringConnectionStateReasonCodeActive}
		return &ec2.AcceptVpcPeeringConnectionOutput{}, nil
	case *ec2.DeleteVpcPeeringConnectionInput:
		s.peers[*in.VpcPeeringConnectionId].Status = &types.VpcPeeringConnectionStateReason{
			Code: types.VpcPeeringConnectionStateReasonCodeDeleted}
		return &ec2.DeleteVpcPeeringConnectionOutput{}, nil
	}
	return nil, nil
}
