package balancing

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
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ELBv2Table returns the state functions of boto_elbv2.
func ELBv2Table(c *cloud.Cloud) module.Table {
	return module.Table{
		"create_target_group": func() module.Resource {
			return &targetGroup{Common: cloud.Common{Cloud: c}, HealthProtocol: "HTTP", HealthPort: "traffic-port",
				HealthPath: "/",
				Interval:   30, Timeout: 5, Healthy: 5, Unhealthy: 2}
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

// health returns the declared health check.
func (g *targetGroup) health() *value.Map {
	return value.NewMap("health_check_protocol", strings.ToUpper(g.HealthProtocol), "health_check_port", g.HealthPort,
		"health_check_path", g.HealthPath, "health_check_interval_seconds", g.Interval, "health_check_timeout_seconds",
		g.Timeout, "healthy_threshold_count", g.Healthy, "unhealthy_threshold_count", g.Unhealthy)
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
		fields.Update(g.health())
		p.Create(fields)
		p.Then("target group made", func(ctx context.Context) error { return g.create(ctx, a) })
		return p, nil
	}
	if old := sdk.ToInt32(has.Port); int(old) != *g.Port || !strings.EqualFold(string(has.Protocol), g.Protocol) {
		return nil, diag.Resource.Hint(errors.New("protocol and port of a target group cannot be changed"),
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
		differs = p.Compare(name, old.Value(name), want.Value(name)) || differs
	}
	if differs {
		p.Then("health check set", func(ctx context.Context) error {
			_, err := elbv2Of(a).ModifyTargetGroup(ctx, &elb.ModifyTargetGroupInput{TargetGroupArn: has.TargetGroupArn,
				HealthCheckProtocol: types.ProtocolEnum(strings.ToUpper(g.HealthProtocol)), HealthCheckPort: &g.HealthPort,
				HealthCheckPath:            &g.HealthPath,
				HealthCheckIntervalSeconds: cloud.Int32s(&g.Interval), HealthCheckTimeoutSeconds: cloud.Int32s(&g.Timeout),
				HealthyThresholdCount: cloud.Int32s(&g.Healthy), UnhealthyThresholdCount: cloud.Int32s(&g.Unhealthy)})
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
	_, err = elbv2Of(a).CreateTargetGroup(ctx, &elb.CreateTargetGroupInput{Name: &g.Name, Port: cloud.Int32s(g.Port),
		VpcId: &vpc, Protocol: types.ProtocolEnum(strings.ToUpper(g.Protocol)),
		HealthCheckProtocol: types.ProtocolEnum(strings.ToUpper(g.HealthProtocol)), HealthCheckPort: &g.HealthPort,
		HealthCheckPath:            &g.HealthPath,
		HealthCheckIntervalSeconds: cloud.Int32s(&g.Interval), HealthCheckTimeoutSeconds: cloud.Int32s(&g.Timeout),
		HealthyThresholdCount: cloud.Int32s(&g.Healthy), UnhealthyThresholdCount: cloud.Int32s(&g.Unhealthy)})
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
