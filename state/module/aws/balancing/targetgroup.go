package balancing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ELBv2Table returns the state functions of boto_elbv2.
func ELBv2Table(c *cloud.Cloud) module.Table {
	return module.Table{
		"create_target_group": func() module.Resource {
			return &targetGroup{Common: cloud.Common{Cloud: c}}
		},
		"delete_target_group":  func() module.Resource { return &targetGroupAbsent{Common: cloud.Common{Cloud: c}} },
		"targets_registered":   func() module.Resource { return &targets{Common: cloud.Common{Cloud: c}} },
		"targets_deregistered": func() module.Resource { return &targets{Common: cloud.Common{Cloud: c}, gone: true} },
	}
}

func elbv2Of(a *cloud.Account) *elb.Client { return elb.NewFromConfig(a.Client("elbv2")) }

// targetGroup implements boto_elbv2.create_target_group.
type targetGroup struct {
	cloud.Common
	Name           string  `sls:"name"`
	Protocol       string  `sls:"protocol,required"`
	Port           *int    `sls:"port,required"`
	VPCID          string  `sls:"vpc_id"`
	VPCName        string  `sls:"vpc_name"`
	HealthProtocol *string `sls:"health_check_protocol"`
	HealthPort     *string `sls:"health_check_port"`
	HealthPath     *string `sls:"health_check_path"`
	Interval       *int    `sls:"health_check_interval_seconds"`
	Timeout        *int    `sls:"health_check_timeout_seconds"`
	Healthy        *int    `sls:"healthy_threshold_count"`
	Unhealthy      *int    `sls:"unhealthy_threshold_count"`
}

// RunsBeside implements module.Concurrent.
func (*targetGroup) RunsBeside() {}

// findTargetGroup returns the target group with a name or an ARN, or nil if there is none.
func findTargetGroup(ctx context.Context, a *cloud.Account, name string) (*types.TargetGroup, error) {
	in := &elb.DescribeTargetGroupsInput{Names: []string{name}}
	if strings.HasPrefix(name, "arn:") {
		in = &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{name}}
	}
	out, err := elbv2Of(a).DescribeTargetGroups(ctx, in)
	if cloud.HasCode(err, "TargetGroupNotFound") {
		return nil, nil
	}
	if err != nil || len(out.TargetGroups) == 0 {
		return nil, cloud.Failed("reading target group", name, err)
	}
	return &out.TargetGroups[0], nil
}

// Check implements module.Resource.
func (g *targetGroup) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return g.Planned(g.look(ctx))
}

// health returns the declared fields of the health check. With all, it adds Salt's values for the others.
func (g *targetGroup) health(all bool) *value.Map {
	m := value.NewMap()
	for _, f := range []struct {
		name  string
		given *string
		usual string
	}{{"health_check_protocol", g.HealthProtocol, "HTTP"}, {"health_check_port", g.HealthPort, "traffic-port"},
		{"health_check_path", g.HealthPath, "/"}} {
		switch {
		case f.given != nil && f.name == "health_check_protocol":
			m.Set(f.name, strings.ToUpper(*f.given))
		case f.given != nil:
			m.Set(f.name, *f.given)
		case all:
			m.Set(f.name, f.usual)
		}
	}
	for _, f := range []struct {
		name  string
		given *int
		usual int
	}{{"health_check_interval_seconds", g.Interval, 30}, {"health_check_timeout_seconds", g.Timeout, 5},
		{"healthy_threshold_count", g.Healthy, 5}, {"unhealthy_threshold_count", g.Unhealthy, 2}} {
		switch {
		case f.given != nil:
			m.Set(f.name, *f.given)
		case all:
			m.Set(f.name, f.usual)
		}
	}
	return m
}

// text returns a field of a health check in the form of the SDK, or nil if it is not set.
func text(m *value.Map, name string) *string { return cloud.Optional(cloud.Text(m, name)) }

// number returns a field of a health check in the form of the SDK, or nil if it is not set.
func number(m *value.Map, name string) *int32 {
	if n, ok := cloud.Number(m, name); ok {
		return &n
	}
	return nil
}

func (g *targetGroup) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := g.Cloud.Account(ctx, "elbv2", g.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.Expect("target group", g.Name)
		vpc, err := network.VPCOf(ctx, a, g.VPCID, g.VPCName)
		if err != nil {
			return nil, err
		}
		fields := value.NewMap("target_group", g.Name, "protocol", strings.ToUpper(g.Protocol), "port", *g.Port, "vpc_id",
			vpc)
		fields.Update(g.health(true))
		p.Create(fields)
		p.Then("target group made", func(ctx context.Context) error { return g.create(ctx, a) })
		return p, nil
	}
	if old := int(sdk.ToInt32(has.Port)); old != *g.Port {
		p.Warnings = append(p.Warnings, fmt.Sprintf("port is %d and cannot be changed", old))
	}
	if old := string(has.Protocol); !strings.EqualFold(old, g.Protocol) {
		p.Warnings = append(p.Warnings, "protocol is "+old+" and cannot be changed")
	}
	old := value.NewMap("health_check_protocol", string(has.HealthCheckProtocol), "health_check_port",
		sdk.ToString(has.HealthCheckPort),
		"health_check_path", sdk.ToString(has.HealthCheckPath), "health_check_interval_seconds",
		int(sdk.ToInt32(has.HealthCheckIntervalSeconds)),
		"health_check_timeout_seconds", int(sdk.ToInt32(has.HealthCheckTimeoutSeconds)),
		"healthy_threshold_count", int(sdk.ToInt32(has.HealthyThresholdCount)), "unhealthy_threshold_count",
		int(sdk.ToInt32(has.UnhealthyThresholdCount)))
	differs, want := false, g.health(false)
	for _, name := range want.Names() {
		differs = p.Compare(name, old.Value(name), want.Value(name)) || differs
	}
	if differs {
		p.Then("health check set", func(ctx context.Context) error {
			_, err := elbv2Of(a).ModifyTargetGroup(ctx, &elb.ModifyTargetGroupInput{TargetGroupArn: has.TargetGroupArn,
				HealthCheckProtocol: types.ProtocolEnum(cloud.Text(want, "health_check_protocol")),
				HealthCheckPort:     text(want, "health_check_port"), HealthCheckPath: text(want, "health_check_path"),
				HealthCheckIntervalSeconds: number(want, "health_check_interval_seconds"),
				HealthCheckTimeoutSeconds:  number(want, "health_check_timeout_seconds"),
				HealthyThresholdCount:      number(want, "healthy_threshold_count"),
				UnhealthyThresholdCount:    number(want, "unhealthy_threshold_count")})
			return cloud.Failed("setting the health check of target group", g.Name, err)
		})
	}
	return p, nil
}

func (g *targetGroup) create(ctx context.Context, a *cloud.Account) error {
	vpc, err := network.VPCOf(ctx, a, g.VPCID, g.VPCName)
	if err != nil {
		return err
	}
	want := g.health(true)
	_, err = elbv2Of(a).CreateTargetGroup(ctx, &elb.CreateTargetGroupInput{Name: &g.Name, Port: cloud.Int32s(g.Port),
		VpcId: &vpc, Protocol: types.ProtocolEnum(strings.ToUpper(g.Protocol)),
		HealthCheckProtocol: types.ProtocolEnum(cloud.Text(want, "health_check_protocol")),
		HealthCheckPort:     text(want, "health_check_port"), HealthCheckPath: text(want, "health_check_path"),
		HealthCheckIntervalSeconds: number(want, "health_check_interval_seconds"),
		HealthCheckTimeoutSeconds:  number(want, "health_check_timeout_seconds"),
		HealthyThresholdCount:      number(want, "healthy_threshold_count"),
		UnhealthyThresholdCount:    number(want, "unhealthy_threshold_count")})
	return cloud.Failed("making target group", g.Name, err)
}

// targetGroupAbsent implements boto_elbv2.delete_target_group.
type targetGroupAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (g *targetGroupAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.Cloud.Account(ctx, "elbv2", g.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if has != nil && err == nil {
		p.Remove(sdk.ToString(has.TargetGroupArn), value.NewMap("target_group", g.Name))
		p.Then("target group deleted", func(ctx context.Context) error {
			_, err := elbv2Of(a).DeleteTargetGroup(ctx, &elb.DeleteTargetGroupInput{TargetGroupArn: has.TargetGroupArn})
			return cloud.Failed("deleting target group", g.Name, err)
		})
	}
	return g.Planned(p, err)
}

// targets implements boto_elbv2.targets_registered and targets_deregistered.
type targets struct {
	cloud.Common
	Name    string   `sls:"name"`
	Targets []string `sls:"targets,required"`
	gone    bool
}

// Check implements module.Resource.
func (g *targets) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.Cloud.Account(ctx, "elbv2", g.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if err != nil {
		return module.Diff{}, err
	}
	var old []string
	switch {
	case has != nil:
		out, err := elbv2Of(a).DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: has.TargetGroupArn})
		if err != nil {
			return module.Diff{}, cloud.Failed("reading the targets of", g.Name, err)
		}
		for _, d := range out.TargetHealthDescriptions {
			if d.TargetHealth == nil || d.TargetHealth.State != types.TargetHealthStateEnumDraining {
				old = append(old, sdk.ToString(d.Target.Id))
			}
		}
	case !a.Expects("target group", g.Name):
		return module.Diff{}, cloud.Missing("target group", g.Name, "boto_elbv2.create_target_group")
	}
	var change []types.TargetDescription
	want := slices.Clone(old)
	for _, id := range g.Targets {
		if slices.Contains(old, id) == g.gone {
			change = append(change, types.TargetDescription{Id: &id})
			if g.gone {
				want = slices.DeleteFunc(want, func(s string) bool { return s == id })
			} else {
				want = append(want, id)
			}
		}
	}
	if len(change) > 0 {
		p.Differ("targets", cloud.Sorted(old), cloud.Sorted(want))
		p.Then("targets set", func(ctx context.Context) error { return g.set(ctx, a, change) })
	}
	return g.Planned(p, nil)
}

func (g *targets) set(ctx context.Context, a *cloud.Account, change []types.TargetDescription) error {
	has, err := findTargetGroup(ctx, a, g.Name)
	if has == nil || err != nil {
		return errors.Join(err, cloud.Missing("target group", g.Name, "boto_elbv2.create_target_group"))
	}
	if g.gone {
		_, err = elbv2Of(a).DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: has.TargetGroupArn,
			Targets: change})
	} else {
		_, err = elbv2Of(a).RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: has.TargetGroupArn,
			Targets: change})
	}
	return cloud.Failed("setting the targets of", g.Name, err)
}
