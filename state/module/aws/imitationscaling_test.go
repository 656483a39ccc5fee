package aws_test

import (
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// scaling imitates auto scaling groups, and launch configurations that a test adds. A deleted group is listed for some
// reads.
type scaling struct {
	all            map[string]*scalingGroup
	configurations map[string]types.LaunchConfiguration
	lag            int
}

type scalingGroup struct {
	types.AutoScalingGroup
	policies      map[string]types.ScalingPolicy
	actions       map[string]types.ScheduledUpdateGroupAction
	notifications []types.NotificationConfiguration
	deleting      *lag // reads that still show the group after its deletion; nil before
}

func newScaling(reads int) *scaling {
	return &scaling{all: map[string]*scalingGroup{}, configurations: map[string]types.LaunchConfiguration{}, lag: reads}
}

func (s *scaling) one(name *string) (*scalingGroup, error) {
	if g := s.all[*name]; g != nil {
		return g, nil
	}
	return nil, fault("ValidationError")
}

func (s *scaling) answer(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.DescribeAutoScalingGroupsInput:
		return s.describe(in)
	case *autoscaling.CreateAutoScalingGroupInput:
		return s.create(in)
	case *autoscaling.UpdateAutoScalingGroupInput:
		return s.update(in)
	case *autoscaling.DeleteAutoScalingGroupInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		if len(g.Instances) > 0 && !sdk.ToBool(in.ForceDelete) {
			return nil, fault("ResourceInUse")
		}
		g.Status, g.deleting = sdk.String("Delete in progress"), &lag{s.lag}
		return &autoscaling.DeleteAutoScalingGroupOutput{}, nil
	case *autoscaling.DescribeLaunchConfigurationsInput:
		var list []types.LaunchConfiguration
		for _, name := range in.LaunchConfigurationNames {
			if c, ok := s.configurations[name]; ok {
				list = append(list, c)
			}
		}
		return &autoscaling.DescribeLaunchConfigurationsOutput{LaunchConfigurations: list}, nil
	case *autoscaling.DeleteLaunchConfigurationInput:
		delete(s.configurations, *in.LaunchConfigurationName)
		return &autoscaling.DeleteLaunchConfigurationOutput{}, nil
	}
	for _, part := range []func(any) (any, error){s.answerTags, s.answerBalancers, s.answerPolicies, s.answerActions,
		s.answerNotifications} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return nil, nil
}

func (s *scaling) describe(in *autoscaling.DescribeAutoScalingGroupsInput) (any, error) {
	var list []types.AutoScalingGroup
	for _, name := range in.AutoScalingGroupNames {
		g := s.all[name]
		if g == nil {
			continue
		}
		if g.deleting != nil && g.deleting.over() {
			delete(s.all, name)
			continue
		}
		list = append(list, g.AutoScalingGroup)
	}
	shown, next := page(list, in.NextToken)
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: shown, NextToken: next}, nil
}

func (s *scaling) create(in *autoscaling.CreateAutoScalingGroupInput) (any, error) {
	if s.all[*in.AutoScalingGroupName] != nil {
		return nil, fault("AlreadyExists")
	}
	if (in.LaunchTemplate == nil) == (in.LaunchConfigurationName == nil) || len(in.AvailabilityZones) == 0 &&
		in.VPCZoneIdentifier == nil {
		return nil, fault("ValidationError")
	}
	g := types.AutoScalingGroup{AutoScalingGroupName: in.AutoScalingGroupName, MinSize: in.MinSize, MaxSize: in.MaxSize,
		DesiredCapacity: in.DesiredCapacity, DefaultCooldown: in.DefaultCooldown,
		HealthCheckGracePeriod: in.HealthCheckGracePeriod,
		HealthCheckType:        in.HealthCheckType, PlacementGroup: in.PlacementGroup,
		TerminationPolicies: in.TerminationPolicies,
		LoadBalancerNames:   in.LoadBalancerNames, TargetGroupARNs: in.TargetGroupARNs,
		AvailabilityZones: in.AvailabilityZones,
		VPCZoneIdentifier: in.VPCZoneIdentifier, LaunchTemplate: in.LaunchTemplate,
		LaunchConfigurationName: in.LaunchConfigurationName}
	for _, f := range []struct {
		to    **int32
		value int32
	}{{&g.DesiredCapacity, *in.MinSize}, {&g.DefaultCooldown, 300}, {&g.HealthCheckGracePeriod, 0}} {
		if *f.to == nil {
			*f.to = &f.value
		}
	}
	if g.HealthCheckType == nil {
		g.HealthCheckType = sdk.String("EC2")
	}
	if g.TerminationPolicies == nil {
		g.TerminationPolicies = []string{"Default"}
	}
	s.all[*in.AutoScalingGroupName] = &scalingGroup{AutoScalingGroup: g, policies: map[string]types.ScalingPolicy{},
		actions: map[string]types.ScheduledUpdateGroupAction{}}
	s.tag(in.Tags)
	return &autoscaling.CreateAutoScalingGroupOutput{}, nil
}

// update sets the fields that a request has.
func (s *scaling) update(in *autoscaling.UpdateAutoScalingGroupInput) (any, error) {
	g, err := s.one(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	keep(&g.MinSize, in.MinSize)
	keep(&g.MaxSize, in.MaxSize)
	keep(&g.DesiredCapacity, in.DesiredCapacity)
	keep(&g.DefaultCooldown, in.DefaultCooldown)
	keep(&g.HealthCheckGracePeriod, in.HealthCheckGracePeriod)
	keep(&g.HealthCheckType, in.HealthCheckType)
	keep(&g.PlacementGroup, in.PlacementGroup)
	if in.TerminationPolicies != nil {
		g.TerminationPolicies = in.TerminationPolicies
	}
	if in.AvailabilityZones != nil {
		g.AvailabilityZones = in.AvailabilityZones
	}
	keep(&g.VPCZoneIdentifier, in.VPCZoneIdentifier)
	if in.LaunchTemplate != nil || in.LaunchConfigurationName != nil {
		g.LaunchTemplate, g.LaunchConfigurationName = in.LaunchTemplate, in.LaunchConfigurationName
	}
	n := max(*g.DesiredCapacity, *g.MinSize)
	g.DesiredCapacity = &n
	return &autoscaling.UpdateAutoScalingGroupOutput{}, nil
}

// keep sets a field unless the request lacks it.
func keep[T any](to **T, given *T) {
	if given != nil {
		*to = given
	}
}

func (s *scaling) tag(tags []types.Tag) {
	for _, t := range tags {
		g := s.all[*t.ResourceId]
		g.Tags = slices.DeleteFunc(slices.Clone(g.Tags), func(o types.TagDescription) bool { return *o.Key == *t.Key })
		g.Tags = append(g.Tags, types.TagDescription{Key: t.Key, Value: t.Value, PropagateAtLaunch: t.PropagateAtLaunch,
			ResourceId: t.ResourceId, ResourceType: t.ResourceType})
	}
}

func (s *scaling) answerTags(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.CreateOrUpdateTagsInput:
		s.tag(in.Tags)
		return &autoscaling.CreateOrUpdateTagsOutput{}, nil
	case *autoscaling.DeleteTagsInput:
		for _, t := range in.Tags {
			g := s.all[*t.ResourceId]
			g.Tags = slices.DeleteFunc(slices.Clone(g.Tags), func(o types.TagDescription) bool { return *o.Key == *t.Key })
		}
		return &autoscaling.DeleteTagsOutput{}, nil
	case *autoscaling.SuspendProcessesInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			for _, name := range in.ScalingProcesses {
				g.SuspendedProcesses = append(slices.Clone(g.SuspendedProcesses), types.SuspendedProcess{ProcessName: &name})
			}
		}
		return &autoscaling.SuspendProcessesOutput{}, err
	case *autoscaling.ResumeProcessesInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			g.SuspendedProcesses = slices.DeleteFunc(slices.Clone(g.SuspendedProcesses), func(p types.SuspendedProcess) bool {
				return slices.Contains(in.ScalingProcesses, *p.ProcessName)
			})
		}
		return &autoscaling.ResumeProcessesOutput{}, err
	}
	return nil, nil
}

func (s *scaling) answerBalancers(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.AttachLoadBalancersInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			g.LoadBalancerNames = union(g.LoadBalancerNames, in.LoadBalancerNames)
		}
		return &autoscaling.AttachLoadBalancersOutput{}, err
	case *autoscaling.DetachLoadBalancersInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			g.LoadBalancerNames = without(g.LoadBalancerNames, in.LoadBalancerNames)
		}
		return &autoscaling.DetachLoadBalancersOutput{}, err
	case *autoscaling.AttachLoadBalancerTargetGroupsInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			g.TargetGroupARNs = union(g.TargetGroupARNs, in.TargetGroupARNs)
		}
		return &autoscaling.AttachLoadBalancerTargetGroupsOutput{}, err
	case *autoscaling.DetachLoadBalancerTargetGroupsInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			g.TargetGroupARNs = without(g.TargetGroupARNs, in.TargetGroupARNs)
		}
		return &autoscaling.DetachLoadBalancerTargetGroupsOutput{}, err
	}
	return nil, nil
}

func (s *scaling) answerPolicies(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.DescribePoliciesInput:
		var list []types.ScalingPolicy
		if g := s.all[*in.AutoScalingGroupName]; g != nil {
			list = sortedBy(g.policies)
		}
		shown, next := page(list, in.NextToken)
		return &autoscaling.DescribePoliciesOutput{ScalingPolicies: shown, NextToken: next}, nil
	case *autoscaling.PutScalingPolicyInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		arn := fmt.Sprintf("arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:1:autoScalingGroupName/%s:policyName/%s",
			*in.AutoScalingGroupName, *in.PolicyName)
		g.policies[*in.PolicyName] = types.ScalingPolicy{PolicyName: in.PolicyName, PolicyARN: &arn,
			AutoScalingGroupName: in.AutoScalingGroupName,
			PolicyType:           sdk.String("SimpleScaling"), AdjustmentType: in.AdjustmentType,
			ScalingAdjustment: in.ScalingAdjustment, Cooldown: in.Cooldown, MinAdjustmentMagnitude: in.MinAdjustmentMagnitude}
		return &autoscaling.PutScalingPolicyOutput{PolicyARN: &arn}, nil
	case *autoscaling.DeletePolicyInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			delete(g.policies, *in.PolicyName)
		}
		return &autoscaling.DeletePolicyOutput{}, err
	}
	return nil, nil
}

func (s *scaling) answerActions(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.DescribeScheduledActionsInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		shown, next := page(sortedBy(g.actions), in.NextToken)
		return &autoscaling.DescribeScheduledActionsOutput{ScheduledUpdateGroupActions: shown, NextToken: next}, nil
	case *autoscaling.PutScheduledUpdateGroupActionInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		g.actions[*in.ScheduledActionName] = types.ScheduledUpdateGroupAction{ScheduledActionName: in.ScheduledActionName,
			DesiredCapacity: in.DesiredCapacity, MinSize: in.MinSize, MaxSize: in.MaxSize, Recurrence: in.Recurrence,
			StartTime: in.StartTime, EndTime: in.EndTime}
		return &autoscaling.PutScheduledUpdateGroupActionOutput{}, nil
	case *autoscaling.DeleteScheduledActionInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err == nil {
			delete(g.actions, *in.ScheduledActionName)
		}
		return &autoscaling.DeleteScheduledActionOutput{}, err
	}
	return nil, nil
}

func (s *scaling) answerNotifications(in any) (any, error) {
	switch in := in.(type) {
	case *autoscaling.DescribeNotificationConfigurationsInput:
		g, err := s.one(&in.AutoScalingGroupNames[0])
		if err != nil {
			return nil, err
		}
		shown, next := page(g.notifications, in.NextToken)
		return &autoscaling.DescribeNotificationConfigurationsOutput{NotificationConfigurations: shown, NextToken: next}, nil
	case *autoscaling.PutNotificationConfigurationInput:
		g, err := s.one(in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		g.notifications = slices.DeleteFunc(slices.Clone(g.notifications),
			func(n types.NotificationConfiguration) bool { return *n.TopicARN == *in.TopicARN })
		for _, kind := range in.NotificationTypes {
			g.notifications = append(g.notifications,
				types.NotificationConfiguration{AutoScalingGroupName: in.AutoScalingGroupName,
					TopicARN: in.TopicARN, NotificationType: &kind})
		}
		return &autoscaling.PutNotificationConfigurationOutput{}, nil
	}
	return nil, nil
}
