package scaling

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// subnetIDs returns the IDs of the subnets of the group.
func (g *asgPresent) subnetIDs(ctx context.Context, a *cloud.Account) ([]string, error) {
	var ids []string
	for _, v := range cloud.Texts(g.Subnets) {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.TrimSpace(one)
			if one != "" && !strings.HasPrefix(one, "subnet-") {
				return nil, diag.Amazon.Hint(fmt.Errorf("vpc_zone_identifier has %s, which is not the ID of a subnet", one),
					"give the names of subnets as subnet_names")
			}
			ids = append(ids, one)
		}
	}
	return network.SubnetIDs(ctx, a, ids, g.SubnetNames)
}

func (g *asgPresent) vpc(ctx context.Context, a *cloud.Account) (string, error) {
	ids, err := g.subnetIDs(ctx, a)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return network.VPCOfSubnets(ctx, a, ids)
}

// update plans the request that creates or changes the group. Properties that take requests of their own are planned
// elsewhere. moved says whether the group has to use another launch template, or another version of it.
func (g *asgPresent) update(ctx context.Context, p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup,
	moved bool) error {
	subnets, err := g.subnetIDs(ctx, a)
	if err != nil {
		return err
	}
	differs := moved
	numbers := []struct {
		name string
		old  *int32
		want *int
	}{{"min_size", has.MinSize, g.Min}, {"max_size", has.MaxSize, g.Max},
		{"desired_capacity", has.DesiredCapacity, g.Desired},
		{"default_cooldown", has.DefaultCooldown, g.Cooldown},
		{"health_check_period", has.HealthCheckGracePeriod, g.HealthPeriod}}
	for _, n := range numbers {
		if n.want == nil {
			continue
		}
		var old any
		if n.old != nil {
			old = int(*n.old)
		}
		differs = p.Compare(n.name, old, *n.want) || differs
	}
	for name, pair := range map[string][2]string{"health_check_type": {sdk.ToString(has.HealthCheckType), g.HealthType},
		"placement_group": {sdk.ToString(has.PlacementGroup), g.Placement}} {
		if pair[1] != "" {
			differs = p.Compare(name, pair[0], pair[1]) || differs
		}
	}
	if len(g.Termination) > 0 {
		differs = p.Compare("termination_policies", value.Strings(has.TerminationPolicies...),
			value.Strings(g.Termination...)) || differs
	}
	if len(g.Zones) > 0 && len(subnets) == 0 {
		differs = p.Compare("availability_zones", cloud.Sorted(has.AvailabilityZones), cloud.Sorted(g.Zones)) || differs
	}
	if len(subnets) > 0 {
		var old []string
		if v := sdk.ToString(has.VPCZoneIdentifier); v != "" {
			old = strings.Split(v, ",")
		}
		differs = p.Compare("vpc_zone_identifier", cloud.Sorted(old), cloud.Sorted(subnets)) || differs
	}
	if p.Made {
		g.create(p, a)
	} else if differs {
		p.Then("group updated", func(ctx context.Context) error { return g.change(ctx, a, moved) })
	}
	return nil
}

// source returns the latest version of the launch template, or the name of the launch configuration, from which the
// group starts instances.
func (g *asgPresent) source(ctx context.Context, a *cloud.Account) (*types.LaunchTemplateSpecification, *string,
	error) {
	t, err := compute.TemplateOf(ctx, a, g.LaunchName)
	switch {
	case err != nil:
		return nil, nil, err
	case t == nil:
		return nil, nil, cloud.Missing("launch configuration", g.LaunchName, "boto_lc.present")
	case t.Old:
		return nil, &g.LaunchName, nil
	}
	return &types.LaunchTemplateSpecification{LaunchTemplateName: &g.LaunchName, Version: &t.Version}, nil, nil
}

// places returns the subnets in which the group starts instances, or its zones if it has no subnets.
func (g *asgPresent) places(ctx context.Context, a *cloud.Account) (subnets *string, zones []string, err error) {
	ids, err := g.subnetIDs(ctx, a)
	if err != nil || len(ids) == 0 {
		return nil, g.Zones, err
	}
	return sdk.String(strings.Join(ids, ",")), nil, nil
}

func (g *asgPresent) create(p *cloud.Plan, a *cloud.Account) {
	p.Then("group made", func(ctx context.Context) error {
		in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: &g.Name, MinSize: cloud.Int32s(g.Min),
			MaxSize:         cloud.Int32s(g.Max),
			DesiredCapacity: cloud.Int32s(g.Desired), DefaultCooldown: cloud.Int32s(g.Cooldown),
			HealthCheckGracePeriod: cloud.Int32s(g.HealthPeriod),
			TerminationPolicies:    g.Termination, LoadBalancerNames: g.Balancers, TargetGroupARNs: g.TargetGroups}
		var err error
		if in.VPCZoneIdentifier, in.AvailabilityZones, err = g.places(ctx, a); err != nil {
			return err
		}
		if g.HealthType != "" {
			in.HealthCheckType = &g.HealthType
		}
		if g.Placement != "" {
			in.PlacementGroup = &g.Placement
		}
		tags, err := g.wantedTags()
		if err != nil {
			return err
		}
		in.Tags = tags
		if in.LaunchTemplate, in.LaunchConfigurationName, err = g.source(ctx, a); err != nil {
			return err
		}
		// AWS does not show a new instance profile everywhere at once.
		return cloud.WaitFor(ctx, "the instance profile of group "+g.Name+" is seen", cloud.Soon,
			func(ctx context.Context) (bool, error) {
				_, err := clientOf(a).CreateAutoScalingGroup(ctx, in)
				if cloud.HasCode(err, "ValidationError") && strings.Contains(err.Error(), "nstance profile") ||
					cloud.HasCode(err, "ValidationError") && strings.Contains(err.Error(), "IamInstanceProfile") {
					return false, nil
				}
				return err == nil, cloud.Failed("making auto scaling group", g.Name, err)
			})
	})
}

func (g *asgPresent) change(ctx context.Context, a *cloud.Account, moved bool) error {
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.Name, MinSize: cloud.Int32s(g.Min),
		MaxSize:         cloud.Int32s(g.Max),
		DesiredCapacity: cloud.Int32s(g.Desired), DefaultCooldown: cloud.Int32s(g.Cooldown),
		HealthCheckGracePeriod: cloud.Int32s(g.HealthPeriod), TerminationPolicies: g.Termination}
	var err error
	if in.VPCZoneIdentifier, in.AvailabilityZones, err = g.places(ctx, a); err != nil {
		return err
	}
	if g.HealthType != "" {
		in.HealthCheckType = &g.HealthType
	}
	if g.Placement != "" {
		in.PlacementGroup = &g.Placement
	}
	if moved {
		if in.LaunchTemplate, in.LaunchConfigurationName, err = g.source(ctx, a); err != nil {
			return err
		}
	}
	_, err = clientOf(a).UpdateAutoScalingGroup(ctx, in)
	return cloud.Failed("changing auto scaling group", g.Name, err)
}
