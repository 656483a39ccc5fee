package aws_test

import (
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// targetGroups imitates target groups. Lists show a deregistered target as draining for lag reads.
type targetGroups struct {
	all map[string]*imitatedTargets // by ARN
	lag int
}

type imitatedTargets struct {
	types.TargetGroup
	targets  []string
	draining map[string]*lag
}

func newTargetGroups(reads int) *targetGroups {
	return &targetGroups{all: map[string]*imitatedTargets{}, lag: reads}
}

const targetARNs = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/"

func (s *targetGroups) one(arn *string) (*imitatedTargets, error) {
	if g := s.all[*arn]; g != nil {
		return g, nil
	}
	return nil, fault("TargetGroupNotFound")
}

func (s *targetGroups) answer(in any) (any, error) {
	switch in := in.(type) {
	case *elb.CreateTargetGroupInput:
		arn := targetARNs + *in.Name
		if s.all[arn] != nil {
			return nil, fault("DuplicateTargetGroupName")
		}
		s.all[arn] = &imitatedTargets{TargetGroup: types.TargetGroup{TargetGroupName: in.Name, TargetGroupArn: &arn,
			Port: in.Port, Protocol: in.Protocol, VpcId: in.VpcId, HealthCheckProtocol: in.HealthCheckProtocol,
			HealthCheckPort: in.HealthCheckPort, HealthCheckPath: in.HealthCheckPath,
			HealthCheckIntervalSeconds: in.HealthCheckIntervalSeconds, HealthCheckTimeoutSeconds: in.HealthCheckTimeoutSeconds,
			HealthyThresholdCount: in.HealthyThresholdCount, UnhealthyThresholdCount: in.UnhealthyThresholdCount},
			draining: map[string]*lag{}}
		return &elb.CreateTargetGroupOutput{}, nil
	case *elb.DescribeTargetGroupsInput:
		var list []types.TargetGroup
		for _, g := range sortedBy(s.all) {
			if slices.Contains(in.Names, *g.TargetGroupName) || slices.Contains(in.TargetGroupArns, *g.TargetGroupArn) {
				list = append(list, g.TargetGroup)
			}
		}
		if len(list) == 0 {
			return nil, fault("TargetGroupNotFound")
		}
		return &elb.DescribeTargetGroupsOutput{TargetGroups: list}, nil
	case *elb.ModifyTargetGroupInput:
		g, err := s.one(in.TargetGroupArn)
		if err != nil {
			return nil, err
		}
		g.HealthCheckProtocol, g.HealthCheckPort, g.HealthCheckPath = in.HealthCheckProtocol, in.HealthCheckPort,
			in.HealthCheckPath
		g.HealthCheckIntervalSeconds, g.HealthCheckTimeoutSeconds = in.HealthCheckIntervalSeconds,
			in.HealthCheckTimeoutSeconds
		g.HealthyThresholdCount, g.UnhealthyThresholdCount = in.HealthyThresholdCount, in.UnhealthyThresholdCount
		return &elb.ModifyTargetGroupOutput{}, nil
	case *elb.DeleteTargetGroupInput:
		delete(s.all, *in.TargetGroupArn)
		return &elb.DeleteTargetGroupOutput{}, nil
	}
	return s.answerTargets(in)
}

func (s *targetGroups) answerTargets(in any) (any, error) {
	switch in := in.(type) {
	case *elb.RegisterTargetsInput:
		g, err := s.one(in.TargetGroupArn)
		if err != nil {
			return nil, err
		}
		for _, target := range in.Targets {
			delete(g.draining, *target.Id)
			g.targets = append(g.targets, *target.Id)
		}
		return &elb.RegisterTargetsOutput{}, nil
	case *elb.DeregisterTargetsInput:
		g, err := s.one(in.TargetGroupArn)
		if err != nil {
			return nil, err
		}
		for _, target := range in.Targets {
			g.targets = without(g.targets, []string{*target.Id})
			g.draining[*target.Id] = &lag{s.lag}
		}
		return &elb.DeregisterTargetsOutput{}, nil
	case *elb.DescribeTargetHealthInput:
		g, err := s.one(in.TargetGroupArn)
		if err != nil {
			return nil, err
		}
		out := &elb.DescribeTargetHealthOutput{}
		show := func(id string, state types.TargetHealthStateEnum) {
			out.TargetHealthDescriptions = append(out.TargetHealthDescriptions, types.TargetHealthDescription{
				Target: &types.TargetDescription{Id: sdk.String(id)}, TargetHealth: &types.TargetHealth{State: state}})
		}
		for _, id := range g.targets {
			show(id, types.TargetHealthStateEnumHealthy)
		}
		for _, id := range sortedKeys(g.draining) {
			if !g.draining[id].over() {
				show(id, types.TargetHealthStateEnumDraining)
			}
		}
		return out, nil
	}
	return nil, nil
}
