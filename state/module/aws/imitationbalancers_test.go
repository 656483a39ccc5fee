package aws_test

import (
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
)

// balancers imitates classic load balancers.
type balancers struct{ all map[string]*balancer }

type balancer struct {
	types.LoadBalancerDescription
	attributes types.LoadBalancerAttributes
	policies   map[string]types.PolicyDescription
	tags       []types.Tag
}

func newBalancers() *balancers { return &balancers{all: map[string]*balancer{}} }

func (s *balancers) answer(in any) (any, error) {
	switch in := in.(type) {
	case *elb.DescribeLoadBalancersInput:
		var list []types.LoadBalancerDescription
		for _, name := range in.LoadBalancerNames {
			b := s.all[name]
			if b == nil {
				return nil, fault("LoadBalancerNotFound")
			}
			list = append(list, b.described())
		}
		shown, next := page(list, in.Marker)
		return &elb.DescribeLoadBalancersOutput{LoadBalancerDescriptions: shown, NextMarker: next}, nil
	case *elb.CreateLoadBalancerInput:
		return s.create(in)
	case *elb.DeleteLoadBalancerInput:
		delete(s.all, *in.LoadBalancerName)
		return &elb.DeleteLoadBalancerOutput{}, nil
	case *elb.DescribeTagsInput:
		b, err := s.one(&in.LoadBalancerNames[0])
		if err != nil {
			return nil, err
		}
		return &elb.DescribeTagsOutput{TagDescriptions: []types.TagDescription{{LoadBalancerName: b.LoadBalancerName,
			Tags: b.tags}}}, nil
	case *elb.AddTagsInput:
		b, err := s.one(&in.LoadBalancerNames[0])
		if err != nil {
			return nil, err
		}
		for _, tag := range in.Tags {
			b.untag(tag.Key)
		}
		b.tags = append(b.tags, in.Tags...)
		return &elb.AddTagsOutput{}, nil
	case *elb.RemoveTagsInput:
		b, err := s.one(&in.LoadBalancerNames[0])
		if err != nil {
			return nil, err
		}
		for _, tag := range in.Tags {
			b.untag(tag.Key)
		}
		return &elb.RemoveTagsOutput{}, nil
	}
	for _, part := range []func(any) (any, error){s.answerListeners, s.answerPlaces, s.answerAttributes,
		s.answerPolicies} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return nil, nil
}

func (s *balancers) one(name *string) (*balancer, error) {
	if b := s.all[*name]; b != nil {
		return b, nil
	}
	return nil, fault("LoadBalancerNotFound")
}

func (b *balancer) untag(key *string) {
	b.tags = slices.DeleteFunc(slices.Clone(b.tags), func(t types.Tag) bool { return *t.Key == *key })
}

// described returns a copy of the description of a load balancer.
func (b *balancer) described() types.LoadBalancerDescription {
	d := b.LoadBalancerDescription
	d.ListenerDescriptions = nil
	for _, l := range b.ListenerDescriptions {
		listener := *l.Listener
		d.ListenerDescriptions = append(d.ListenerDescriptions,
			types.ListenerDescription{Listener: &listener, PolicyNames: slices.Clone(l.PolicyNames)})
	}
	check := *b.HealthCheck
	d.HealthCheck, d.Policies = &check, &types.Policies{}
	return d
}

func (s *balancers) create(in *elb.CreateLoadBalancerInput) (any, error) {
	if s.all[*in.LoadBalancerName] != nil {
		return nil, fault("DuplicateLoadBalancerName")
	}
	b := &balancer{LoadBalancerDescription: types.LoadBalancerDescription{LoadBalancerName: in.LoadBalancerName,
		AvailabilityZones: in.AvailabilityZones, Subnets: in.Subnets, SecurityGroups: in.SecurityGroups,
		Scheme: sdk.String("internet-facing"), DNSName: sdk.String(*in.LoadBalancerName + "-1.us-east-1.elb.amazonaws.com"),
		HealthCheck: &types.HealthCheck{Target: sdk.String("TCP:80"), Interval: sdk.Int32(30), Timeout: sdk.Int32(5),
			HealthyThreshold: sdk.Int32(10), UnhealthyThreshold: sdk.Int32(2)}},
		policies: map[string]types.PolicyDescription{}, tags: in.Tags}
	if in.Scheme != nil {
		b.Scheme = in.Scheme
	}
	s.all[*in.LoadBalancerName] = b
	return &elb.CreateLoadBalancerOutput{DNSName: b.DNSName}, b.listen(in.Listeners)
}

func (b *balancer) listen(all []types.Listener) error {
	for _, l := range all {
		if b.listener(l.LoadBalancerPort) != nil {
			return fault("DuplicateListener")
		}
		if secure := *l.Protocol == "HTTPS" || *l.Protocol == "SSL"; secure != (l.SSLCertificateId != nil) {
			return fault("ValidationError")
		}
		b.ListenerDescriptions = append(b.ListenerDescriptions, types.ListenerDescription{Listener: &l})
	}
	return nil
}

func (b *balancer) listener(port int32) *types.ListenerDescription {
	i := slices.IndexFunc(b.ListenerDescriptions, func(d types.ListenerDescription) bool {
		return d.Listener.LoadBalancerPort == port
	})
	if i < 0 {
		return nil
	}
	return &b.ListenerDescriptions[i]
}

func (s *balancers) answerListeners(in any) (any, error) {
	switch in := in.(type) {
	case *elb.CreateLoadBalancerListenersInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		return &elb.CreateLoadBalancerListenersOutput{}, b.listen(in.Listeners)
	case *elb.DeleteLoadBalancerListenersInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		b.ListenerDescriptions = slices.DeleteFunc(slices.Clone(b.ListenerDescriptions),
			func(d types.ListenerDescription) bool {
				return slices.Contains(in.LoadBalancerPorts, d.Listener.LoadBalancerPort)
			})
		return &elb.DeleteLoadBalancerListenersOutput{}, nil
	case *elb.SetLoadBalancerPoliciesOfListenerInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		l := b.listener(in.LoadBalancerPort)
		if l == nil {
			return nil, fault("ListenerNotFound")
		}
		if err := b.checkPolicies(in.PolicyNames); err != nil {
			return nil, err
		}
		l.PolicyNames = in.PolicyNames
		return &elb.SetLoadBalancerPoliciesOfListenerOutput{}, nil
	case *elb.SetLoadBalancerPoliciesForBackendServerInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		b.BackendServerDescriptions = slices.DeleteFunc(slices.Clone(b.BackendServerDescriptions),
			func(d types.BackendServerDescription) bool {
				return *d.InstancePort == *in.InstancePort
			})
		if len(in.PolicyNames) > 0 {
			b.BackendServerDescriptions = append(b.BackendServerDescriptions,
				types.BackendServerDescription{InstancePort: in.InstancePort, PolicyNames: in.PolicyNames})
		}
		return &elb.SetLoadBalancerPoliciesForBackendServerOutput{}, b.checkPolicies(in.PolicyNames)
	}
	return nil, nil
}

// checkPolicies returns an error for a policy that does not exist.
func (b *balancer) checkPolicies(names []string) error {
	for _, name := range names {
		if _, ok := b.policies[name]; !ok {
			return fault("PolicyNotFound")
		}
	}
	return nil
}

func (s *balancers) answerPolicies(in any) (any, error) {
	switch in := in.(type) {
	case *elb.CreateLoadBalancerPolicyInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		if _, ok := b.policies[*in.PolicyName]; ok {
			return nil, fault("DuplicatePolicyName")
		}
		b.policies[*in.PolicyName] = types.PolicyDescription{PolicyName: in.PolicyName, PolicyTypeName: in.PolicyTypeName,
			PolicyAttributeDescriptions: attributesOf(in.PolicyAttributes)}
		return &elb.CreateLoadBalancerPolicyOutput{}, nil
	case *elb.DeleteLoadBalancerPolicyInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		for _, l := range b.ListenerDescriptions {
			if slices.Contains(l.PolicyNames, *in.PolicyName) {
				return nil, fault("InvalidConfigurationRequest")
			}
		}
		delete(b.policies, *in.PolicyName)
		return &elb.DeleteLoadBalancerPolicyOutput{}, nil
	case *elb.DescribeLoadBalancerPoliciesInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		return &elb.DescribeLoadBalancerPoliciesOutput{PolicyDescriptions: sortedBy(b.policies)}, nil
	}
	return nil, nil
}

func (s *balancers) answerPlaces(in any) (any, error) {
	switch in := in.(type) {
	case *elb.EnableAvailabilityZonesForLoadBalancerInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.AvailabilityZones = union(b.AvailabilityZones, in.AvailabilityZones)
		}
		return &elb.EnableAvailabilityZonesForLoadBalancerOutput{}, err
	case *elb.DisableAvailabilityZonesForLoadBalancerInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.AvailabilityZones = without(b.AvailabilityZones, in.AvailabilityZones)
		}
		return &elb.DisableAvailabilityZonesForLoadBalancerOutput{}, err
	case *elb.AttachLoadBalancerToSubnetsInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.Subnets = union(b.Subnets, in.Subnets)
		}
		return &elb.AttachLoadBalancerToSubnetsOutput{}, err
	case *elb.DetachLoadBalancerFromSubnetsInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.Subnets = without(b.Subnets, in.Subnets)
		}
		return &elb.DetachLoadBalancerFromSubnetsOutput{}, err
	case *elb.ApplySecurityGroupsToLoadBalancerInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.SecurityGroups = in.SecurityGroups
		}
		return &elb.ApplySecurityGroupsToLoadBalancerOutput{}, err
	case *elb.RegisterInstancesWithLoadBalancerInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.Instances = append(slices.Clone(b.Instances), in.Instances...)
		}
		return &elb.RegisterInstancesWithLoadBalancerOutput{}, err
	case *elb.DeregisterInstancesFromLoadBalancerInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.Instances = slices.DeleteFunc(slices.Clone(b.Instances), func(i types.Instance) bool {
				return slices.ContainsFunc(in.Instances, func(gone types.Instance) bool {
					return *gone.InstanceId == *i.InstanceId
				})
			})
		}
		return &elb.DeregisterInstancesFromLoadBalancerOutput{}, err
	}
	return nil, nil
}

// union returns the items of both lists, and without those of the first that the second lacks.
func union(has, add []string) []string { return append(without(has, add), add...) }

// without returns the items of has that gone lacks.
func without(has, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(has), func(s string) bool { return slices.Contains(gone, s) })
}

func (s *balancers) answerAttributes(in any) (any, error) {
	switch in := in.(type) {
	case *elb.ConfigureHealthCheckInput:
		b, err := s.one(in.LoadBalancerName)
		if err == nil {
			b.HealthCheck = in.HealthCheck
		}
		return &elb.ConfigureHealthCheckOutput{}, err
	case *elb.DescribeLoadBalancerAttributesInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		now := b.attributes
		return &elb.DescribeLoadBalancerAttributesOutput{LoadBalancerAttributes: &now}, nil
	case *elb.ModifyLoadBalancerAttributesInput:
		b, err := s.one(in.LoadBalancerName)
		if err != nil {
			return nil, err
		}
		set := in.LoadBalancerAttributes
		if set.AccessLog != nil {
			b.attributes.AccessLog = set.AccessLog
		}
		if set.ConnectionDraining != nil {
			b.attributes.ConnectionDraining = set.ConnectionDraining
		}
		if set.CrossZoneLoadBalancing != nil {
			b.attributes.CrossZoneLoadBalancing = set.CrossZoneLoadBalancing
		}
		if set.ConnectionSettings != nil {
			b.attributes.ConnectionSettings = set.ConnectionSettings
		}
		return &elb.ModifyLoadBalancerAttributesOutput{}, nil
	}
	return nil, nil
}

func attributesOf(all []types.PolicyAttribute) (shown []types.PolicyAttributeDescription) {
	for _, a := range all {
		shown = append(shown,
			types.PolicyAttributeDescription{AttributeName: a.AttributeName, AttributeValue: a.AttributeValue})
	}
	return shown
}
