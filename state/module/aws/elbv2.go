package aws

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func elbv2Table(c *Cloud) module.Table {
	return module.Table{
		"create_target_group": func() module.Resource {
			return &targetGroup{common: common{cloud: c}, HealthProtocol: "HTTP", HealthPort: "traffic-port", HealthPath: "/",
				Interval: 30, Timeout: 5, Healthy: 5, Unhealthy: 2}
		},
		"delete_target_group":  func() module.Resource { return &targetGroupAbsent{common: common{cloud: c}} },
		"targets_registered":   func() module.Resource { return &targets{common: common{cloud: c}} },
		"targets_deregistered": func() module.Resource { return &targets{common: common{cloud: c}, gone: true} },
	}
}

func elbv2Of(a *account) *elb.Client { return elb.NewFromConfig(a.client("elbv2")) }

// targetGroup is boto_elbv2.create_target_group.
type targetGroup struct {
	common
	Name           string `sls:"name"`
	Protocol       string `sls:"protocol,required"`
	Port           *int   `sls:"port,required"`
	VPCID          string `sls:"vpc_id"`
	VPCName        string `sls:"vpc_name"`
	HealthProtocol string `sls:"health_check_protocol"`
	HealthPort     string `sls:"health_check_port"`
	HealthPath     string `sls:"health_check_path"`
	Interval       int    `sls:"health_check_interval_seconds"`
	Timeout        int    `sls:"health_check_timeout_seconds"`
	Healthy        int    `sls:"healthy_threshold_count"`
	Unhealthy      int    `sls:"unhealthy_threshold_count"`
}

// RunsBeside implements module.Concurrent.
func (*targetGroup) RunsBeside() {}

// findTargetGroup reads a target group by its name or ARN; nil for none.
func findTargetGroup(ctx context.Context, a *account, name string) (*types.TargetGroup, error) {
	in := &elb.DescribeTargetGroupsInput{Names: []string{name}}
	if strings.HasPrefix(name, "arn:") {
		in = &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{name}}
	}
	out, err := elbv2Of(a).DescribeTargetGroups(ctx, in)
	if code(err, "TargetGroupNotFound") {
		return nil, nil
	}
	if err != nil || len(out.TargetGroups) == 0 {
		return nil, failed("reading target group", name, err)
	}
	return &out.TargetGroups[0], nil
}

// Check implements module.Resource.
func (g *targetGroup) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return g.check(g.look(ctx))
}

// health is the health check as declared.
func (g *targetGroup) health() *value.Map {
	return value.NewMap("health_check_protocol", strings.ToUpper(g.HealthProtocol), "health_check_port", g.HealthPort,
		"health_check_path", g.HealthPath, "health_check_interval_seconds", g.Interval, "health_check_timeout_seconds",
		g.Timeout, "healthy_threshold_count", g.Healthy, "unhealthy_threshold_count", g.Unhealthy)
}

func (g *targetGroup) look(ctx context.Context) (*plan, error) {
	a, err := g.cloud.account(ctx, "elbv2", g.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.expect("target group", g.Name)
		vpc, err := vpcOf(ctx, a, g.VPCID, g.VPCName)
		if err != nil {
			return nil, err
		}
		fields := value.NewMap("target_group", g.Name, "protocol", strings.ToUpper(g.Protocol), "port", *g.Port, "vpc_id",
			vpc)
		fields.Update(g.health())
		p.create(fields)
		p.then("target group made", func(ctx context.Context) error { return g.create(ctx, a) })
		return p, nil
	}
	if old := sdk.ToInt32(has.Port); int(old) != *g.Port || !strings.EqualFold(string(has.Protocol), g.Protocol) {
		return nil, diag.WithHint(errors.New("protocol and port of a target group cannot be changed"),
			"give the group with the new ones another name")
	}
	old := value.NewMap("health_check_protocol", string(has.HealthCheckProtocol), "health_check_port",
		sdk.ToString(has.HealthCheckPort),
		"health_check_path", sdk.ToString(has.HealthCheckPath), "health_check_interval_seconds",
		int(sdk.ToInt32(has.HealthCheckIntervalSeconds)),
		"health_check_timeout_seconds", int(sdk.ToInt32(has.HealthCheckTimeoutSeconds)),
		"healthy_threshold_count", int(sdk.ToInt32(has.HealthyThresholdCount)), "unhealthy_threshold_count",
		int(sdk.ToInt32(has.UnhealthyThresholdCount)))
	differs, want := false, g.health()
	for _, name := range want.Names() {
		differs = p.compare(name, old.Value(name), want.Value(name)) || differs
	}
	if differs {
		p.then("health check set", func(ctx context.Context) error {
			_, err := elbv2Of(a).ModifyTargetGroup(ctx, &elb.ModifyTargetGroupInput{TargetGroupArn: has.TargetGroupArn,
				HealthCheckProtocol: types.ProtocolEnum(strings.ToUpper(g.HealthProtocol)), HealthCheckPort: &g.HealthPort,
				HealthCheckPath:            &g.HealthPath,
				HealthCheckIntervalSeconds: int32s(&g.Interval), HealthCheckTimeoutSeconds: int32s(&g.Timeout),
				HealthyThresholdCount: int32s(&g.Healthy), UnhealthyThresholdCount: int32s(&g.Unhealthy)})
			return failed("setting the health check of target group", g.Name, err)
		})
	}
	return p, nil
}

func (g *targetGroup) create(ctx context.Context, a *account) error {
	vpc, err := vpcOf(ctx, a, g.VPCID, g.VPCName)
	if err != nil {
		return err
	}
	_, err = elbv2Of(a).CreateTargetGroup(ctx, &elb.CreateTargetGroupInput{Name: &g.Name, Port: int32s(g.Port),
		VpcId: &vpc, Protocol: types.ProtocolEnum(strings.ToUpper(g.Protocol)),
		HealthCheckProtocol: types.ProtocolEnum(strings.ToUpper(g.HealthProtocol)), HealthCheckPort: &g.HealthPort,
		HealthCheckPath:            &g.HealthPath,
		HealthCheckIntervalSeconds: int32s(&g.Interval), HealthCheckTimeoutSeconds: int32s(&g.Timeout),
		HealthyThresholdCount: int32s(&g.Healthy), UnhealthyThresholdCount: int32s(&g.Unhealthy)})
	return failed("making target group", g.Name, err)
}

// targetGroupAbsent is boto_elbv2.delete_target_group.
type targetGroupAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (g *targetGroupAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.cloud.account(ctx, "elbv2", g.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if has != nil && err == nil {
		p.remove(value.NewMap("target_group", g.Name))
		p.then("target group deleted", func(ctx context.Context) error {
			_, err := elbv2Of(a).DeleteTargetGroup(ctx, &elb.DeleteTargetGroupInput{TargetGroupArn: has.TargetGroupArn})
			return failed("deleting target group", g.Name, err)
		})
	}
	return g.check(p, err)
}

// targets are boto_elbv2.targets_registered and targets_deregistered.
type targets struct {
	common
	Name    string   `sls:"name"`
	Targets []string `sls:"targets,required"`
	gone    bool
}

// Check implements module.Resource.
func (g *targets) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := g.cloud.account(ctx, "elbv2", g.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := findTargetGroup(ctx, a, g.Name)
	if err != nil {
		return module.Diff{}, err
	}
	var old []string
	switch {
	case has != nil:
		out, err := elbv2Of(a).DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: has.TargetGroupArn})
		if err != nil {
			return module.Diff{}, failed("reading the targets of", g.Name, err)
		}
		for _, d := range out.TargetHealthDescriptions {
			if d.TargetHealth == nil || d.TargetHealth.State != types.TargetHealthStateEnumDraining {
				old = append(old, sdk.ToString(d.Target.Id))
			}
		}
	case !a.expects("target group", g.Name):
		return module.Diff{}, missing("target group", g.Name, "boto_elbv2.create_target_group")
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
		p.differ("targets", sorted(old), sorted(want))
		p.then("targets set", func(ctx context.Context) error { return g.set(ctx, a, change) })
	}
	return g.check(p, nil)
}

func (g *targets) set(ctx context.Context, a *account, change []types.TargetDescription) error {
	has, err := findTargetGroup(ctx, a, g.Name)
	if has == nil || err != nil {
		return errors.Join(err, missing("target group", g.Name, "boto_elbv2.create_target_group"))
	}
	if g.gone {
		_, err = elbv2Of(a).DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: has.TargetGroupArn,
			Targets: change})
	} else {
		_, err = elbv2Of(a).RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: has.TargetGroupArn,
			Targets: change})
	}
	return failed("setting the targets of", g.Name, err)
}
