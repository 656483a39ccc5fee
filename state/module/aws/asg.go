package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func asgTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &asgPresent{common: common{cloud: c}, PoliciesPillar: "boto_asg_scaling_policies",
				TerminationPillar: "boto_asg_termination_policies",
				ActionsPillar:     "boto_asg_scheduled_actions", AlarmsPillar: "boto_asg_alarms",
				NotifyPillar: "boto_asg_notification_arn", NotifyTypesPillar: "boto_asg_notification_types"}
		},
		"absent": func() module.Resource { return &asgAbsent{common: common{cloud: c}} },
	}
}

func asgOf(a *account) *autoscaling.Client { return autoscaling.NewFromConfig(a.client("autoscaling")) }

// asgPresent is boto_asg.present: an auto scaling group with its launch template, policies, actions and alarms.
type asgPresent struct {
	common
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

// Check implements module.Resource.
func (g *asgPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return g.check(g.look(ctx))
}

// describeASG reads a group; nil for none.
func describeASG(ctx context.Context, a *account, name string) (*types.AutoScalingGroup, error) {
	out, err := asgOf(a).DescribeAutoScalingGroups(ctx,
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil {
		return nil, failed("reading auto scaling group", name, err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return nil, nil
	}
	return &out.AutoScalingGroups[0], nil
}

func (g *asgPresent) look(ctx context.Context) (*plan, error) {
	a, err := g.cloud.account(ctx, "asg", g.Account)
	if err != nil {
		return nil, err
	}
	if len(g.Termination) == 0 {
		g.Termination = texts(g.cloud.setting(g.TerminationPillar))
	}
	p := newPlan()
	has, err := describeASG(ctx, a, g.Name)
	if err != nil {
		return nil, err
	}
	if has != nil && strings.Contains(sdk.ToString(has.Status), "Delet") {
		return nil, diag.WithHint(fmt.Errorf("group %s is being deleted", g.Name), "run it again when it is gone")
	}
	if has == nil {
		a.expect("asg", g.Name)
		has = &types.AutoScalingGroup{}
		p.create(value.NewMap("asg", g.Name))
	}
	moved, err := g.launch(ctx, p, a, has)
	if err != nil {
		return nil, err
	}
	if err := g.update(ctx, p, a, has, moved); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, *plan, *account, *types.AutoScalingGroup) error{
		g.balancers, g.tags, g.suspended, g.policies, g.actions, g.notifications} {
		if err := part(ctx, p, a, has); err != nil {
			return nil, err
		}
	}
	err = alarmsOf(ctx, p, a, g.Alarms, g.cloud.setting(g.AlarmsPillar), g.Name, "AutoScalingGroupName", g.skipsAlarm)
	return p, err
}

// skipsAlarm reports of an alarm whether it only scales a group that cannot scale.
func (g *asgPresent) skipsAlarm(attributes *value.Map) bool {
	var actions []string
	for _, name := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
		actions = append(actions, texts(attributes.Value(name))...)
	}
	return *g.Min == *g.Max && len(actions) > 0 && !slices.ContainsFunc(actions, func(s string) bool {
		return !strings.HasPrefix(s, "scaling_policy:")
	})
}

// launchOf reads launch_config: the arguments of boto_lc.present.
func (g *asgPresent) launchOf() (*launch, error) {
	m := mapOf(g.Launch)
	if m == nil {
		return nil, nil
	}
	l := &launch{}
	resource := &lcPresent{}
	arguments := m.Clone()
	arguments.Set("name", g.LaunchName)
	if _, problems := module.Decode(resource,
		module.Call{Function: "boto_lc.present", Arguments: arguments}); len(problems) > 0 {
		return nil, fmt.Errorf("launch_config: %w", problems.Err())
	}
	for _, name := range m.Names() {
		known, _ := module.ArgumentsOf(resource)
		if !slices.ContainsFunc(known, func(a module.Argument) bool { return a.Name == name }) {
			return nil, diag.WithHint(fmt.Errorf("launch_config has no %s", name), "it takes the arguments of boto_lc.present")
		}
	}
	*l = resource.launch
	if l.Profile == "" {
		l.Profile = g.Profile
	}
	return l, nil
}

// launch plans the launch template, and reports whether the group takes another one.
func (g *asgPresent) launch(ctx context.Context, p *plan, a *account, has *types.AutoScalingGroup) (bool, error) {
	l, err := g.launchOf()
	if err != nil {
		return false, err
	}
	changed := false
	if l != nil {
		vpc, err := g.vpc(ctx, a)
		if err != nil {
			return false, err
		}
		if has.LaunchConfigurationName != nil && strings.HasPrefix(*has.LaunchConfigurationName, g.LaunchName) {
			return g.stays(ctx, p, a, l, vpc, *has.LaunchConfigurationName)
		}
		if changed, err = l.look(ctx, p, g.cloud, a, g.LaunchName, "launch_config ", vpc); err != nil {
			return false, err
		}
	}
	t, err := templateOf(ctx, a, g.LaunchName)
	if err != nil {
		return false, err
	}
	old := shownLaunch(has)
	switch {
	case t == nil && !a.expects("template", g.LaunchName):
		return false, missing("launch configuration", g.LaunchName, "boto_lc.present")
	case p.made, changed:
		return true, nil
	case t != nil && t.old:
		return p.compare("launch_config_name", sdk.ToString(has.LaunchConfigurationName), g.LaunchName), nil
	case t != nil && has.LaunchTemplate != nil && sdk.ToString(has.LaunchTemplate.LaunchTemplateName) == g.LaunchName &&
		slices.Contains([]string{t.version, "$Latest"}, sdk.ToString(has.LaunchTemplate.Version)):
		return false, nil
	}
	version := later
	if t != nil {
		version = t.version
	}
	p.differ("launch_template", old, g.LaunchName+" version "+version)
	return true, nil
}

// stays plans a group with an old launch configuration: it keeps it as long as that is as declared.
func (g *asgPresent) stays(ctx context.Context, p *plan, a *account, l *launch, vpc, old string) (bool, error) {
	now, err := configurationOf(ctx, a, old)
	if err != nil || now == nil {
		return false, err
	}
	want, err := l.fields(ctx, g.cloud, a, vpc)
	if err != nil {
		return false, err
	}
	if !now.fields.Has("instance_monitoring") || !want.Has("instance_monitoring") { // which AWS sets by itself
		now.fields.Delete("instance_monitoring")
	}
	if value.Equal(now.fields, want) {
		return false, nil
	}
	if _, err := l.look(ctx, p, g.cloud, a, g.LaunchName, "launch_config ", vpc); err != nil {
		return false, err
	}
	p.differ("launch_template", "launch configuration "+old, g.LaunchName)
	return true, nil
}

func shownLaunch(has *types.AutoScalingGroup) any {
	switch {
	case has.LaunchTemplate != nil:
		return sdk.ToString(has.LaunchTemplate.LaunchTemplateName) + " version " + sdk.ToString(has.LaunchTemplate.Version)
	case has.LaunchConfigurationName != nil:
		return "launch configuration " + *has.LaunchConfigurationName
	}
	return nil
}

// subnetIDs are the subnets of the group.
func (g *asgPresent) subnetIDs(ctx context.Context, a *account) ([]string, error) {
	var ids []string
	for _, v := range texts(g.Subnets) {
		for one := range strings.SplitSeq(v, ",") {
			ids = append(ids, strings.TrimSpace(one))
		}
	}
	return subnetIDs(ctx, a, ids, g.SubnetNames)
}

func (g *asgPresent) vpc(ctx context.Context, a *account) (string, error) {
	ids, err := g.subnetIDs(ctx, a)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return vpcOfSubnets(ctx, a, ids)
}

func int32s(n *int) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n) //nolint:gosec // AWS has no larger numbers
	return &v
}

// update plans what one request sets: it makes the group, or changes it.
func (g *asgPresent) update(ctx context.Context, p *plan, a *account, has *types.AutoScalingGroup, moved bool) error {
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
		differs = p.compare(n.name, old, *n.want) || differs
	}
	for name, pair := range map[string][2]string{"health_check_type": {sdk.ToString(has.HealthCheckType), g.HealthType},
		"placement_group": {sdk.ToString(has.PlacementGroup), g.Placement}} {
		if pair[1] != "" {
			differs = p.compare(name, pair[0], pair[1]) || differs
		}
	}
	if len(g.Termination) > 0 {
		differs = p.compare("termination_policies", value.Strings(has.TerminationPolicies...),
			value.Strings(g.Termination...)) || differs
	}
	if len(g.Zones) > 0 && len(subnets) == 0 {
		differs = p.compare("availability_zones", sorted(has.AvailabilityZones), sorted(g.Zones)) || differs
	}
	if len(subnets) > 0 {
		var old []string
		if v := sdk.ToString(has.VPCZoneIdentifier); v != "" {
			old = strings.Split(v, ",")
		}
		differs = p.compare("vpc_zone_identifier", sorted(old), sorted(subnets)) || differs
	}
	if p.made {
		g.create(p, a)
	} else if differs {
		p.then("group updated", func(ctx context.Context) error { return g.change(ctx, a, moved) })
	}
	return nil
}

// source is what the group starts instances from now: a template's latest version, or an old configuration.
func (g *asgPresent) source(ctx context.Context, a *account) (*types.LaunchTemplateSpecification, *string, error) {
	t, err := templateOf(ctx, a, g.LaunchName)
	switch {
	case err != nil:
		return nil, nil, err
	case t == nil:
		return nil, nil, missing("launch configuration", g.LaunchName, "boto_lc.present")
	case t.old:
		return nil, &g.LaunchName, nil
	}
	return &types.LaunchTemplateSpecification{LaunchTemplateName: &g.LaunchName, Version: &t.version}, nil, nil
}

// places returns where instances of the group are started: its subnets, or its zones where it names no subnet.
func (g *asgPresent) places(ctx context.Context, a *account) (subnets *string, zones []string, err error) {
	ids, err := g.subnetIDs(ctx, a)
	if err != nil || len(ids) == 0 {
		return nil, g.Zones, err
	}
	return sdk.String(strings.Join(ids, ",")), nil, nil
}

func (g *asgPresent) create(p *plan, a *account) {
	p.then("group made", func(ctx context.Context) error {
		in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: &g.Name, MinSize: int32s(g.Min),
			MaxSize:         int32s(g.Max),
			DesiredCapacity: int32s(g.Desired), DefaultCooldown: int32s(g.Cooldown),
			HealthCheckGracePeriod: int32s(g.HealthPeriod),
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
		// An instance profile that was just made is not seen everywhere at once.
		return waitFor(ctx, "the instance profile of group "+g.Name+" is seen", soon,
			func(ctx context.Context) (bool, error) {
				_, err := asgOf(a).CreateAutoScalingGroup(ctx, in)
				if code(err, "ValidationError") && strings.Contains(err.Error(), "nstance profile") ||
					code(err, "ValidationError") && strings.Contains(err.Error(), "IamInstanceProfile") {
					return false, nil
				}
				return err == nil, failed("making auto scaling group", g.Name, err)
			})
	})
}

func (g *asgPresent) change(ctx context.Context, a *account, moved bool) error {
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &g.Name, MinSize: int32s(g.Min),
		MaxSize:         int32s(g.Max),
		DesiredCapacity: int32s(g.Desired), DefaultCooldown: int32s(g.Cooldown),
		HealthCheckGracePeriod: int32s(g.HealthPeriod), TerminationPolicies: g.Termination}
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
	_, err = asgOf(a).UpdateAutoScalingGroup(ctx, in)
	return failed("changing auto scaling group", g.Name, err)
}

// balancers plans the load balancers and target groups.
func (g *asgPresent) balancers(_ context.Context, p *plan, a *account, has *types.AutoScalingGroup) error {
	if p.made {
		if len(g.Balancers) > 0 {
			p.new.Set("load_balancers", sorted(g.Balancers))
		}
		return nil
	}
	client := asgOf(a)
	if g.Balancers != nil && p.compare("load_balancers", sorted(has.LoadBalancerNames), sorted(g.Balancers)) {
		add, drop := apart(has.LoadBalancerNames, g.Balancers)
		p.then("load balancers set", func(ctx context.Context) (err error) {
			if len(add) > 0 {
				_, err = client.AttachLoadBalancers(ctx, &autoscaling.AttachLoadBalancersInput{AutoScalingGroupName: &g.Name,
					LoadBalancerNames: add})
			}
			if len(drop) > 0 && err == nil {
				_, err = client.DetachLoadBalancers(ctx, &autoscaling.DetachLoadBalancersInput{AutoScalingGroupName: &g.Name,
					LoadBalancerNames: drop})
			}
			return failed("setting the load balancers of group", g.Name, err)
		})
	}
	if g.TargetGroups != nil && p.compare("target_group_arns", sorted(has.TargetGroupARNs), sorted(g.TargetGroups)) {
		add, drop := apart(has.TargetGroupARNs, g.TargetGroups)
		p.then("target groups set", func(ctx context.Context) (err error) {
			if len(add) > 0 {
				_, err = client.AttachLoadBalancerTargetGroups(ctx, &autoscaling.AttachLoadBalancerTargetGroupsInput{
					AutoScalingGroupName: &g.Name, TargetGroupARNs: add})
			}
			if len(drop) > 0 && err == nil {
				_, err = client.DetachLoadBalancerTargetGroups(ctx, &autoscaling.DetachLoadBalancerTargetGroupsInput{
					AutoScalingGroupName: &g.Name, TargetGroupARNs: drop})
			}
			return failed("setting the target groups of group", g.Name, err)
		})
	}
	return nil
}

// apart is what has to be added to old, and dropped from it, to make it want.
func apart(old, want []string) (add, drop []string) {
	for _, v := range want {
		if !slices.Contains(old, v) {
			add = append(add, v)
		}
	}
	for _, v := range old {
		if !slices.Contains(want, v) {
			drop = append(drop, v)
		}
	}
	return add, drop
}

// wantedTags are the tags as AWS takes them.
func (g *asgPresent) wantedTags() (tags []types.Tag, err error) {
	for _, item := range g.Tags {
		m := mapOf(item)
		if text(m, "key") == "" {
			return nil, diag.WithHint(fmt.Errorf("the tag %s lacks its key", value.Repr(item)),
				"write key, value and propagate_at_launch")
		}
		tags = append(tags, types.Tag{Key: sdk.String(text(m, "key")), Value: sdk.String(text(m, "value")),
			ResourceId:        &g.Name,
			ResourceType:      sdk.String("auto-scaling-group"),
			PropagateAtLaunch: sdk.Bool(value.Truth(m.Value("propagate_at_launch")))})
	}
	return tags, nil
}

// tags plans the tags.
func (g *asgPresent) tags(_ context.Context, p *plan, a *account, has *types.AutoScalingGroup) error {
	tags, err := g.wantedTags()
	if g.Tags == nil || err != nil {
		return err
	}
	old, new := value.NewMap(), value.NewMap()
	for _, t := range has.Tags {
		if !strings.HasPrefix(sdk.ToString(t.Key), "aws:") {
			old.Set(sdk.ToString(t.Key), value.NewMap("value", sdk.ToString(t.Value), "propagate_at_launch",
				sdk.ToBool(t.PropagateAtLaunch)))
		}
	}
	for _, t := range tags {
		new.Set(*t.Key, value.NewMap("value", *t.Value, "propagate_at_launch", *t.PropagateAtLaunch))
	}
	if !p.compare("tags", old, new) || p.made {
		return nil
	}
	var gone []types.Tag
	for _, name := range old.Names() {
		if !new.Has(name) {
			gone = append(gone, types.Tag{Key: &name, ResourceId: &g.Name, ResourceType: sdk.String("auto-scaling-group")})
		}
	}
	p.then("tags set", func(ctx context.Context) error {
		_, err := asgOf(a).CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: tags})
		if len(gone) > 0 && err == nil {
			_, err = asgOf(a).DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: gone})
		}
		return failed("tagging group", g.Name, err)
	})
	return nil
}

// suspended plans the processes that do not run.
func (g *asgPresent) suspended(_ context.Context, p *plan, a *account, has *types.AutoScalingGroup) error {
	if g.Suspended == nil {
		return nil
	}
	var old []string
	for _, s := range has.SuspendedProcesses {
		old = append(old, sdk.ToString(s.ProcessName))
	}
	want := texts(g.Suspended)
	if !p.compare("suspended_processes", sorted(old), sorted(want)) {
		return nil
	}
	suspend, resume := apart(old, want)
	p.then("processes suspended", func(ctx context.Context) (err error) {
		if len(suspend) > 0 {
			_, err = asgOf(a).SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &g.Name,
				ScalingProcesses: suspend})
		}
		if len(resume) > 0 && err == nil {
			_, err = asgOf(a).ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &g.Name,
				ScalingProcesses: resume})
		}
		return failed("suspending processes of group", g.Name, err)
	})
	return nil
}

// policies plans the scaling policies: those of the pillar, and over them those of the arguments.
func (g *asgPresent) policies(ctx context.Context, p *plan, a *account, _ *types.AutoScalingGroup) error {
	want, declared := value.NewMap(), g.Policies != nil
	for _, item := range slices.Concat(module.Items(g.cloud.setting(g.PoliciesPillar)), g.Policies) {
		m, declaredName := mapOf(item), text(mapOf(item), "name")
		if declaredName == "" {
			return errors.New("a scaling policy lacks its name")
		}
		declared = true
		one := value.NewMap("adjustment_type", text(m, "adjustment_type"))
		for _, name := range []string{"scaling_adjustment", "cooldown", "min_adjustment_step"} {
			if n, ok := number(m, name); ok {
				one.Set(name, int(n))
			}
		}
		want.Set(declaredName, one)
		a.expect("policy", g.Name+":"+declaredName)
	}
	if !declared {
		return nil
	}
	var now []types.ScalingPolicy
	var err error
	if !p.made {
		if now, err = scalingPolicies(ctx, a, g.Name); err != nil {
			return err
		}
	}
	old := value.NewMap()
	for _, one := range now {
		if k := sdk.ToString(one.PolicyType); k != "" && k != "SimpleScaling" {
			continue
		}
		m := value.NewMap("adjustment_type", sdk.ToString(one.AdjustmentType))
		for name, n := range map[string]*int32{"scaling_adjustment": one.ScalingAdjustment, "cooldown": one.Cooldown,
			"min_adjustment_step": one.MinAdjustmentMagnitude} {
			if n != nil && (mapOf(want.Value(sdk.ToString(one.PolicyName))).Has(name) ||
				!want.Has(sdk.ToString(one.PolicyName))) {
				m.Set(name, int(*n))
			}
		}
		old.Set(sdk.ToString(one.PolicyName), m)
	}
	if !p.compare("scaling_policies", old, want) {
		return nil
	}
	p.then("scaling policies set", func(ctx context.Context) error {
		defer a.forget("policies:" + g.Name)
		return g.setPolicies(ctx, a, old, want)
	})
	return nil
}

func (g *asgPresent) setPolicies(ctx context.Context, a *account, old, want *value.Map) error {
	client := asgOf(a)
	for _, name := range want.Names() {
		m := mapOf(want.Value(name))
		if value.Equal(m, old.Value(name)) {
			continue
		}
		in := &autoscaling.PutScalingPolicyInput{AutoScalingGroupName: &g.Name, PolicyName: &name,
			AdjustmentType: sdk.String(text(m, "adjustment_type"))}
		for field, to := range map[string]**int32{"scaling_adjustment": &in.ScalingAdjustment, "cooldown": &in.Cooldown,
			"min_adjustment_step": &in.MinAdjustmentMagnitude} {
			if n, ok := number(m, field); ok {
				*to = &n
			}
		}
		if _, err := client.PutScalingPolicy(ctx, in); err != nil {
			return failed("setting scaling policy", name, err)
		}
	}
	for _, name := range old.Names() {
		if !want.Has(name) {
			if _, err := client.DeletePolicy(ctx, &autoscaling.DeletePolicyInput{AutoScalingGroupName: &g.Name,
				PolicyName: &name}); err != nil {
				return failed("deleting scaling policy", name, err)
			}
		}
	}
	return nil
}

// actions plans the scheduled actions.
func (g *asgPresent) actions(ctx context.Context, p *plan, a *account, _ *types.AutoScalingGroup) error {
	want := value.NewMap()
	want.Update(mapOf(g.cloud.setting(g.ActionsPillar)))
	want.Update(g.Actions)
	if want.Len() == 0 && g.Actions == nil {
		return nil
	}
	client, old := asgOf(a), value.NewMap()
	if !p.made {
		all, err := pages(func(next *string) ([]types.ScheduledUpdateGroupAction, *string, error) {
			page, err := client.DescribeScheduledActions(ctx,
				&autoscaling.DescribeScheduledActionsInput{AutoScalingGroupName: &g.Name,
					NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the scheduled actions of group", g.Name, err)
			}
			return page.ScheduledUpdateGroupActions, page.NextToken, nil
		})
		if err != nil {
			return err
		}
		for _, s := range all {
			old.Set(sdk.ToString(s.ScheduledActionName), actionFields(s, mapOf(want.Value(sdk.ToString(s.ScheduledActionName)))))
		}
	}
	for _, name := range want.Names() {
		m := mapOf(want.Value(name))
		one := value.NewMap()
		for _, field := range m.Names() {
			if n, ok := number(m, field); ok && strings.Contains(field, "_size") || field == "desired_capacity" && ok {
				one.Set(field, int(n))
			} else if m.Value(field) != nil {
				one.Set(field, text(m, field))
			}
		}
		want.Set(name, one)
	}
	if !p.compare("scheduled_actions", old, want) {
		return nil
	}
	p.then("scheduled actions set", func(ctx context.Context) error { return g.setActions(ctx, client, old, want) })
	return nil
}

func actionFields(s types.ScheduledUpdateGroupAction, want *value.Map) *value.Map {
	m := value.NewMap()
	for name, n := range map[string]*int32{"desired_capacity": s.DesiredCapacity, "min_size": s.MinSize,
		"max_size": s.MaxSize} {
		if n != nil && *n >= 0 {
			m.Set(name, int(*n))
		}
	}
	put(m, "recurrence", s.Recurrence)
	for name, t := range map[string]*time.Time{"start_time": s.StartTime, "end_time": s.EndTime} {
		if t != nil && want.Has(name) {
			m.Set(name, t.UTC().Format(time.RFC3339))
			if v, err := time.Parse(time.RFC3339, text(want, name)); err == nil && v.Equal(*t) {
				m.Set(name, text(want, name))
			}
		}
	}
	return m
}

func (g *asgPresent) setActions(ctx context.Context, client *autoscaling.Client, old, want *value.Map) error {
	for _, name := range want.Names() {
		m := mapOf(want.Value(name))
		if value.Equal(m, old.Value(name)) {
			continue
		}
		in := &autoscaling.PutScheduledUpdateGroupActionInput{AutoScalingGroupName: &g.Name, ScheduledActionName: &name}
		for field, to := range map[string]**int32{"desired_capacity": &in.DesiredCapacity, "min_size": &in.MinSize,
			"max_size": &in.MaxSize} {
			if n, ok := number(m, field); ok {
				*to = &n
			}
		}
		if v := text(m, "recurrence"); v != "" {
			in.Recurrence = &v
		}
		for field, to := range map[string]**time.Time{"start_time": &in.StartTime, "end_time": &in.EndTime} {
			if v := text(m, field); v != "" {
				t, err := time.Parse(time.RFC3339, v)
				if err != nil {
					return diag.WithHint(fmt.Errorf("%s of scheduled action %s: %w", field, name, err), "write 2030-01-31T08:00:00Z")
				}
				*to = &t
			}
		}
		if _, err := client.PutScheduledUpdateGroupAction(ctx, in); err != nil {
			return failed("setting scheduled action", name, err)
		}
	}
	for _, name := range old.Names() {
		if !want.Has(name) {
			_, err := client.DeleteScheduledAction(ctx, &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: &g.Name,
				ScheduledActionName: &name})
			if err != nil {
				return failed("deleting scheduled action", name, err)
			}
		}
	}
	return nil
}

// notifications plans the notifications of the group to a topic.
func (g *asgPresent) notifications(ctx context.Context, p *plan, a *account, _ *types.AutoScalingGroup) error {
	arn, kinds := g.Notify, g.NotifyTypes
	if v := g.cloud.setting(g.NotifyPillar); arn == "" && v != nil {
		arn = value.Str(v)
	}
	if v := g.cloud.setting(g.NotifyTypesPillar); len(kinds) == 0 && v != nil {
		kinds = texts(v)
	}
	if arn == "" || len(kinds) == 0 {
		return nil
	}
	var old []string
	client := asgOf(a)
	if !p.made {
		all, err := pages(func(next *string) ([]types.NotificationConfiguration, *string, error) {
			page, err := client.DescribeNotificationConfigurations(ctx, &autoscaling.DescribeNotificationConfigurationsInput{
				AutoScalingGroupNames: []string{g.Name}, NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the notifications of group", g.Name, err)
			}
			return page.NotificationConfigurations, page.NextToken, nil
		})
		if err != nil {
			return err
		}
		for _, n := range all {
			if sdk.ToString(n.TopicARN) == arn {
				old = append(old, sdk.ToString(n.NotificationType))
			}
		}
	}
	if p.compare("notification_types", sorted(old), sorted(kinds)) {
		p.then("notifications set", func(ctx context.Context) error {
			_, err := client.PutNotificationConfiguration(ctx,
				&autoscaling.PutNotificationConfigurationInput{AutoScalingGroupName: &g.Name,
					TopicARN: &arn, NotificationTypes: kinds})
			return failed("setting the notifications of group", g.Name, err)
		})
	}
	return nil
}

// asgAbsent is boto_asg.absent.
type asgAbsent struct {
	common
	Name      string `sls:"name"`
	Force     bool   `sls:"force"`
	RemoveOwn bool   `sls:"remove_lc"`
}

// Check implements module.Resource.
func (g *asgAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.cloud.account(ctx, "asg", g.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := describeASG(ctx, a, g.Name)
	if has == nil || err != nil {
		return g.check(p, err)
	}
	if len(has.Instances) > 0 && !g.Force {
		return module.Diff{}, diag.WithHint(fmt.Errorf("group %s has %d instances", g.Name, len(has.Instances)),
			"give force: True to terminate them with the group")
	}
	p.remove(value.NewMap("asg", g.Name, "instances", len(has.Instances)))
	p.then("group deleted", func(ctx context.Context) error {
		_, err := asgOf(a).DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &g.Name,
			ForceDelete: &g.Force})
		if err != nil {
			return failed("deleting auto scaling group", g.Name, err)
		}
		return waitFor(ctx, "group "+g.Name+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
			now, err := describeASG(ctx, a, g.Name)
			return now == nil, err
		})
	})
	if g.RemoveOwn {
		g.removeOwn(p, a, has)
	}
	return g.check(p, nil)
}

// removeOwn plans to delete what the group starts instances from.
func (g *asgAbsent) removeOwn(p *plan, a *account, has *types.AutoScalingGroup) {
	p.then("launch template deleted", func(ctx context.Context) error {
		if has.LaunchTemplate != nil {
			return deleteTemplate(ctx, a, sdk.ToString(has.LaunchTemplate.LaunchTemplateName), &template{})
		}
		if has.LaunchConfigurationName == nil {
			return nil
		}
		return deleteTemplate(ctx, a, *has.LaunchConfigurationName, &template{old: true})
	})
}
