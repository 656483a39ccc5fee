// Package scaling has the state boto_asg: auto scaling groups with their policies, schedules and notifications.
package scaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ASGTable returns the state functions of boto_asg.
func ASGTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &asgPresent{Common: cloud.Common{Cloud: c}, PoliciesPillar: "boto_asg_scaling_policies",
				TerminationPillar: "boto_asg_termination_policies",
				ActionsPillar:     "boto_asg_scheduled_actions", AlarmsPillar: "boto_asg_alarms",
				NotifyPillar: "boto_asg_notification_arn", NotifyTypesPillar: "boto_asg_notification_types"}
		},
		"absent": func() module.Resource { return &asgAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

func clientOf(a *cloud.Account) *autoscaling.Client {
	return autoscaling.NewFromConfig(a.Client("autoscaling"))
}

// asgPresent implements boto_asg.present: an auto scaling group with its launch template, policies, actions and alarms.
type asgPresent struct {
	cloud.Common
	Name              string     `sls:"name"`
	LaunchName        string     `sls:"launch_config_name,required"`
	Launch            any        `sls:"launch_config"`
	Zones             []string   `sls:"availability_zones"`
	Min               *int       `sls:"min_size,required"`
	Max               *int       `sls:"max_size,required"`
	Desired           *int       `sls:"desired_capacity"`
	Balancers         []string   `sls:"load_balancers"`
	TargetGroups      []string   `sls:"target_group_arns"`
	Cooldown          *int       `sls:"default_cooldown"`
	HealthType        string     `sls:"health_check_type"`
	HealthPeriod      *int       `sls:"health_check_period"`
	Placement         string     `sls:"placement_group"`
	Subnets           any        `sls:"vpc_zone_identifier"`
	SubnetNames       []string   `sls:"subnet_names"`
	Tags              []any      `sls:"tags"`
	Termination       []string   `sls:"termination_policies"`
	TerminationPillar string     `sls:"termination_policies_from_pillar"`
	Suspended         any        `sls:"suspended_processes"`
	Policies          []any      `sls:"scaling_policies"`
	PoliciesPillar    string     `sls:"scaling_policies_from_pillar"`
	Actions           *value.Map `sls:"scheduled_actions"`
	ActionsPillar     string     `sls:"scheduled_actions_from_pillar"`
	Alarms            *value.Map `sls:"alarms"`
	AlarmsPillar      string     `sls:"alarms_from_pillar"`
	Notify            string     `sls:"notification_arn"`
	NotifyPillar      string     `sls:"notification_arn_from_pillar"`
	NotifyTypes       []string   `sls:"notification_types"`
	NotifyTypesPillar string     `sls:"notification_types_from_pillar"`
	Profile           string     `sls:"instance_profile_name"`
}

// RunsBeside implements module.Concurrent.
func (*asgPresent) RunsBeside() {}

// Valid implements module.Validated.
func (g *asgPresent) Valid() error {
	if *g.Min > *g.Max || g.Desired != nil && (*g.Desired < *g.Min || *g.Desired > *g.Max) {
		return diag.Amazon.Hint(errors.New("min_size, desired_capacity and max_size are not in order"),
			"give a desired_capacity from min_size to max_size")
	}
	return nil
}

// Check implements module.Resource.
func (g *asgPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return g.Planned(g.look(ctx))
}

// Describe returns the group with a name, or nil if there is none.
func Describe(ctx context.Context, a *cloud.Account, name string) (*types.AutoScalingGroup, error) {
	out, err := clientOf(a).DescribeAutoScalingGroups(ctx,
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil {
		return nil, cloud.Failed("reading auto scaling group", name, err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return nil, nil
	}
	return &out.AutoScalingGroups[0], nil
}

func (g *asgPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := g.Cloud.Account(ctx, "asg", g.Arguments)
	if err != nil {
		return nil, err
	}
	if len(g.Termination) == 0 {
		g.Termination = cloud.Texts(g.Cloud.Option(g.TerminationPillar))
	}
	p := cloud.NewPlan()
	has, err := Describe(ctx, a, g.Name)
	if err != nil {
		return nil, err
	}
	if has != nil && strings.Contains(sdk.ToString(has.Status), "Delet") {
		return nil, diag.Resource.Hint(fmt.Errorf("group %s is being deleted", g.Name), "run it again when it is gone")
	}
	if has == nil {
		a.Expect("asg", g.Name)
		has = &types.AutoScalingGroup{}
		p.Create(value.NewMap("asg", g.Name))
	}
	moved, err := g.launch(ctx, p, a, has)
	if err != nil {
		return nil, err
	}
	if err := g.update(ctx, p, a, has, moved); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, *cloud.Plan, *cloud.Account, *types.AutoScalingGroup) error{
		g.balancers, g.tags, g.suspended, g.policies, g.actions, g.notifications} {
		if err := part(ctx, p, a, has); err != nil {
			return nil, err
		}
	}
	err = alarms.Of(ctx, p, a, g.Alarms, g.Cloud.Option(g.AlarmsPillar), g.Name, "AutoScalingGroupName",
		g.skipsAlarm)
	return p, err
}

// skipsAlarm reports whether an alarm is left out: all its actions are scaling policies, and the group cannot scale, as
// its minimum and maximum are the same.
func (g *asgPresent) skipsAlarm(attributes *value.Map) bool {
	var actions []string
	for _, name := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
		actions = append(actions, cloud.Texts(attributes.Value(name))...)
	}
	return *g.Min == *g.Max && len(actions) > 0 && !slices.ContainsFunc(actions, func(s string) bool {
		return !strings.HasPrefix(s, "scaling_policy:")
	})
}
