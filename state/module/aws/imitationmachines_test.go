package aws_test

import (
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// machines imitates the instances, key pairs, elastic addresses, volumes, network interfaces and images of EC2. A new
// instance is not seen at once, and each change of the state of an instance or a volume takes some reads.
type machines struct {
	instances  map[string]*machine
	keys       map[string]bool
	addresses  map[string]*types.Address
	volumes    map[string]*machineVolume
	interfaces map[string]*types.NetworkInterface
	images     map[string]*types.Image // by name
	theirs     []types.Image           // images that other accounts share
	tokens     []string                // of the requests that make instances
	made       int
	lag        int
}

type machine struct {
	types.Instance
	unseen    lag
	changes   lag
	then      types.InstanceStateName // its state once the change is over
	protected bool
	shutdown  string
}

type machineVolume struct {
	types.Volume
	changes lag
	then    types.VolumeState
}

func newMachines(reads int) *machines {
	return &machines{instances: map[string]*machine{}, keys: map[string]bool{}, addresses: map[string]*types.Address{},
		volumes: map[string]*machineVolume{}, interfaces: map[string]*types.NetworkInterface{},
		images: map[string]*types.Image{}, lag: reads}
}

func (s *machines) id(kind string) string {
	s.made++
	return fmt.Sprintf("%s-m%03d", kind, s.made)
}

func (s *machines) answer(in any) (any, error) {
	for _, part := range []func(any) (any, error){s.answerInstances, s.answerStates, s.answerAttributes, s.answerKeys,
		s.answerAddresses, s.answerVolumes, s.answerAttachments, s.answerInterfaces, s.answerPrivate, s.answerImages} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return answerTags(in, func(id string) *[]types.Tag {
		switch {
		case s.instances[id] != nil:
			return &s.instances[id].Tags
		case s.volumes[id] != nil:
			return &s.volumes[id].Tags
		case s.interfaces[id] != nil:
			return &s.interfaces[id].TagSet
		}
		return nil
	})
}

// one finds an instance for a request.
func (s *machines) one(id string) (*machine, error) {
	if m := s.instances[id]; m != nil && m.unseen.over() {
		return m, nil
	}
	return nil, fault("InvalidInstanceID.NotFound")
}

// turn begins a change of the state of an instance.
func (m *machine) turn(now, then types.InstanceStateName, reads int) {
	m.State, m.then, m.changes = &types.InstanceState{Name: now}, then, lag{reads}
}

// settle ends a change of the state that is over.
func (m *machine) settle() {
	if m.changes.over() && m.then != "" {
		m.State, m.then = &types.InstanceState{Name: m.then}, ""
	}
}

func (s *machines) answerInstances(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.RunInstancesInput:
		s.tokens = append(s.tokens, sdk.ToString(in.ClientToken))
		id := s.id("i")
		m := &machine{Instance: types.Instance{InstanceId: &id, ImageId: in.ImageId, InstanceType: in.InstanceType,
			KeyName: in.KeyName, SubnetId: in.SubnetId, PrivateIpAddress: in.PrivateIpAddress, EbsOptimized: in.EbsOptimized,
			SourceDestCheck: sdk.Bool(true), Placement: &types.Placement{AvailabilityZone: sdk.String("us-east-1a")},
			Monitoring: &types.Monitoring{State: types.MonitoringStateDisabled}, Tags: tagged(in.TagSpecifications)},
			unseen: lag{s.lag}, protected: sdk.ToBool(in.DisableApiTermination), shutdown: "stop"}
		if in.Monitoring != nil && sdk.ToBool(in.Monitoring.Enabled) {
			m.Monitoring.State = types.MonitoringStateEnabled
		}
		if in.InstanceInitiatedShutdownBehavior != "" {
			m.shutdown = string(in.InstanceInitiatedShutdownBehavior)
		}
		m.SecurityGroups = groupsOf(in.SecurityGroupIds)
		m.turn(types.InstanceStateNamePending, types.InstanceStateNameRunning, s.lag)
		s.instances[id] = m
		return &ec2.RunInstancesOutput{Instances: []types.Instance{m.Instance}}, nil
	case *ec2.DescribeInstancesInput:
		return s.describe(in)
	}
	return nil, nil
}

func (s *machines) describe(in *ec2.DescribeInstancesInput) (any, error) {
	for _, id := range in.InstanceIds {
		if _, err := s.one(id); err != nil {
			return nil, err
		}
	}
	var list []types.Reservation
	for _, m := range sortedBy(s.instances) {
		m.settle()
		asked := len(in.InstanceIds) == 0 || slices.Contains(in.InstanceIds, *m.InstanceId)
		if asked && m.unseen.over() && matches(in.Filters, m.Tags, map[string]string{"instance-id": *m.InstanceId,
			"instance-state-name": string(m.State.Name), "image-id": sdk.ToString(m.ImageId)}) {
			list = append(list, types.Reservation{Instances: []types.Instance{m.Instance}})
		}
	}
	shown, next := page(list, in.NextToken)
	return &ec2.DescribeInstancesOutput{Reservations: shown, NextToken: next}, nil
}

// answerStates answers requests that start, stop and terminate instances, and those for their monitoring.
func (s *machines) answerStates(in any) (any, error) {
	turn := func(id string, from, now, then types.InstanceStateName) error {
		m, err := s.one(id)
		if err == nil && from != "" && m.State.Name != from {
			return fault("IncorrectInstanceState")
		}
		if err == nil {
			m.turn(now, then, s.lag)
		}
		return err
	}
	watch := func(id string, state types.MonitoringState) error {
		m, err := s.one(id)
		if err == nil {
			m.Monitoring = &types.Monitoring{State: state}
		}
		return err
	}
	switch in := in.(type) {
	case *ec2.StopInstancesInput:
		return &ec2.StopInstancesOutput{}, turn(in.InstanceIds[0], "running", "stopping", "stopped")
	case *ec2.StartInstancesInput:
		return &ec2.StartInstancesOutput{}, turn(in.InstanceIds[0], "stopped", "pending", "running")
	case *ec2.TerminateInstancesInput:
		m, err := s.one(in.InstanceIds[0])
		if err == nil && m.protected {
			return nil, fault("OperationNotPermitted")
		}
		for _, v := range s.volumes {
			if len(v.Attachments) > 0 && *v.Attachments[0].InstanceId == in.InstanceIds[0] {
				v.Attachments, v.State = nil, types.VolumeStateAvailable
			}
		}
		return &ec2.TerminateInstancesOutput{}, turn(in.InstanceIds[0], "", "shutting-down", "terminated")
	case *ec2.MonitorInstancesInput:
		return &ec2.MonitorInstancesOutput{}, watch(in.InstanceIds[0], types.MonitoringStatePending)
	case *ec2.UnmonitorInstancesInput:
		return &ec2.UnmonitorInstancesOutput{}, watch(in.InstanceIds[0], types.MonitoringStateDisabled)
	}
	return nil, nil
}

func (s *machines) answerAttributes(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeInstanceAttributeInput:
		m, err := s.one(*in.InstanceId)
		if err != nil {
			return nil, err
		}
		return &ec2.DescribeInstanceAttributeOutput{
			DisableApiTermination:             &types.AttributeBooleanValue{Value: &m.protected},
			InstanceInitiatedShutdownBehavior: &types.AttributeValue{Value: &m.shutdown}}, nil
	case *ec2.ModifyInstanceAttributeInput:
		m, err := s.one(*in.InstanceId)
		if err != nil {
			return nil, err
		}
		if (in.InstanceType != nil || in.EbsOptimized != nil) && m.State.Name != types.InstanceStateNameStopped {
			return nil, fault("IncorrectInstanceState")
		}
		switch {
		case in.Groups != nil:
			m.SecurityGroups = groupsOf(in.Groups)
		case in.SourceDestCheck != nil:
			m.SourceDestCheck = in.SourceDestCheck.Value
		case in.DisableApiTermination != nil:
			m.protected = *in.DisableApiTermination.Value
		case in.InstanceType != nil:
			m.InstanceType = types.InstanceType(*in.InstanceType.Value)
		case in.EbsOptimized != nil:
			m.EbsOptimized = in.EbsOptimized.Value
		case in.Attribute == types.InstanceAttributeNameInstanceInitiatedShutdownBehavior:
			m.shutdown = *in.Value
		default:
			return nil, fault("InvalidParameterCombination")
		}
		return &ec2.ModifyInstanceAttributeOutput{}, nil
	}
	return nil, nil
}

func (s *machines) answerKeys(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeKeyPairsInput:
		if !s.keys[in.KeyNames[0]] {
			return nil, fault("InvalidKeyPair.NotFound")
		}
		return &ec2.DescribeKeyPairsOutput{KeyPairs: []types.KeyPairInfo{{KeyName: &in.KeyNames[0]}}}, nil
	case *ec2.ImportKeyPairInput:
		if s.keys[*in.KeyName] {
			return nil, fault("InvalidKeyPair.Duplicate")
		}
		s.keys[*in.KeyName] = true
		return &ec2.ImportKeyPairOutput{}, nil
	case *ec2.CreateKeyPairInput:
		if s.keys[*in.KeyName] {
			return nil, fault("InvalidKeyPair.Duplicate")
		}
		s.keys[*in.KeyName] = true
		return &ec2.CreateKeyPairOutput{KeyMaterial: sdk.String("the private half of " + *in.KeyName)}, nil
	case *ec2.DeleteKeyPairInput:
		delete(s.keys, *in.KeyName)
		return &ec2.DeleteKeyPairOutput{}, nil
	}
	return nil, nil
}

func (s *machines) answerAddresses(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.AllocateAddressInput:
		id := s.id("eipalloc")
		s.addresses[id] = &types.Address{AllocationId: &id, PublicIp: sdk.String(fmt.Sprintf("192.0.2.%d", s.made))}
		return &ec2.AllocateAddressOutput{AllocationId: &id, PublicIp: s.addresses[id].PublicIp}, nil
	case *ec2.DescribeAddressesInput:
		out := &ec2.DescribeAddressesOutput{}
		for id, one := range s.addresses {
			if (len(in.AllocationIds) == 0 || slices.Contains(in.AllocationIds, id)) &&
				matches(in.Filters, nil, map[string]string{"instance-id": sdk.ToString(one.InstanceId)}) {
				out.Addresses = append(out.Addresses, *one)
			}
		}
		return out, nil
	case *ec2.AssociateAddressInput:
		return s.associate(in)
	case *ec2.ReleaseAddressInput:
		one := s.addresses[*in.AllocationId]
		if one == nil {
			return nil, fault("InvalidAllocationID.NotFound")
		}
		if m := s.instances[sdk.ToString(one.InstanceId)]; m != nil {
			if m.settle(); m.State.Name != types.InstanceStateNameTerminated {
				return nil, fault("InvalidIPAddress.InUse")
			}
		}
		delete(s.addresses, *in.AllocationId)
		return &ec2.ReleaseAddressOutput{}, nil
	}
	return nil, nil
}

func (s *machines) associate(in *ec2.AssociateAddressInput) (any, error) {
	for id, one := range s.addresses {
		if id != sdk.ToString(in.AllocationId) && *one.PublicIp != sdk.ToString(in.PublicIp) {
			continue
		}
		if n := s.interfaces[sdk.ToString(in.NetworkInterfaceId)]; n != nil {
			n.Association = &types.NetworkInterfaceAssociation{AllocationId: &id, PublicIp: one.PublicIp}
			return &ec2.AssociateAddressOutput{}, nil
		}
		m, err := s.one(sdk.ToString(in.InstanceId))
		if err != nil {
			return nil, err
		}
		if m.State.Name == types.InstanceStateNamePending {
			return nil, fault("InvalidInstanceID")
		}
		for _, other := range s.addresses {
			if sdk.ToString(other.InstanceId) == *m.InstanceId {
				other.InstanceId = nil
			}
		}
		one.InstanceId, m.PublicIpAddress = m.InstanceId, one.PublicIp
		m.NetworkInterfaces = []types.InstanceNetworkInterface{{Association: &types.InstanceNetworkInterfaceAssociation{
			IpOwnerId: sdk.String("123456789012"), PublicIp: one.PublicIp}}}
		return &ec2.AssociateAddressOutput{}, nil
	}
	return nil, fault("InvalidAllocationID.NotFound")
}
