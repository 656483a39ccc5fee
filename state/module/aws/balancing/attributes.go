package balancing

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// healthFields returns the fields of a health check.
func healthFields() cloud.Fields {
	return cloud.Fields{"target": cloud.Word, "interval": cloud.Whole, "timeout": cloud.Whole,
		"healthy_threshold": cloud.Whole, "unhealthy_threshold": cloud.Whole}
}

// health plans the health check.
func (e *elbPresent) health(_ context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	if e.Health.Len() == 0 {
		return nil
	}
	check := types.HealthCheck{HealthyThreshold: sdk.Int32(3), UnhealthyThreshold: sdk.Int32(5), Interval: sdk.Int32(30),
		Timeout: sdk.Int32(5), Target: sdk.String("TCP:80")}
	if has.HealthCheck != nil {
		check = *has.HealthCheck
	}
	numbers := map[string]**int32{"healthy_threshold": &check.HealthyThreshold,
		"unhealthy_threshold": &check.UnhealthyThreshold, "interval": &check.Interval, "timeout": &check.Timeout}
	if err := healthFields().Check("health_check", e.Health); err != nil {
		return err
	}
	differs := false
	for _, name := range e.Health.Names() {
		if name == "target" {
			want := cloud.Text(e.Health, name)
			differs = p.Compare("health_check "+name, sdk.ToString(check.Target), want) || differs
			check.Target = &want
			continue
		}
		field := numbers[name]
		n, ok := cloud.Number(e.Health, name)
		if field == nil || !ok {
			return diag.Amazon.Hint(fmt.Errorf("health_check has no %s, or it is not a number", name),
				"it has target, interval, timeout, healthy_threshold and unhealthy_threshold")
		}
		differs = p.Compare("health_check "+name, int(sdk.ToInt32(*field)), int(n)) || differs
		*field = &n
	}
	if differs || p.Made {
		p.Then("health check set", func(ctx context.Context) error {
			_, err := ELBOf(a).ConfigureHealthCheck(ctx, &elb.ConfigureHealthCheckInput{LoadBalancerName: &e.Name,
				HealthCheck: &check})
			return cloud.Failed("setting the health check of load balancer", e.Name, err)
		})
	}
	return nil
}

// attributes plans the attributes: those of the pillar, overridden by those of the arguments.
func (e *elbPresent) attributes(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	_ *types.LoadBalancerDescription) error {
	want := value.NewMap()
	if m := cloud.MapOf(e.Cloud.Option(e.AttributesPillar)); m != nil {
		want = value.Copy(m).(*value.Map)
	}
	value.Update(want, e.Attributes, true, false)
	if want.Len() == 0 {
		return nil
	}
	client, now := ELBOf(a), &types.LoadBalancerAttributes{}
	if !p.Made {
		out, err := client.DescribeLoadBalancerAttributes(ctx,
			&elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &e.Name})
		if err != nil {
			return cloud.Failed("reading the attributes of load balancer", e.Name, err)
		}
		now = out.LoadBalancerAttributes
	}
	shown, set, differs := ShownAttributes(now), &types.LoadBalancerAttributes{}, false
	for _, group := range want.Names() {
		m, old := cloud.MapOf(want.Value(group)), cloud.MapOf(shown.Value(group))
		if m == nil || old == nil {
			return diag.Amazon.Hint(fmt.Errorf("a load balancer has no attributes %s", group), "%s",
				cloud.Meant(group, shown.Names()))
		}
		merged := old.Clone()
		for _, name := range m.Names() {
			v := m.Value(name)
			if !old.Has(name) {
				return diag.Amazon.Hint(fmt.Errorf("%s has no attribute %s", group, name), "%s", cloud.Meant(name, old.Names()))
			}
			switch old.Value(name).(type) {
			case bool:
				v = value.Truth(v) && value.Str(v) != "false"
			case int:
				n, ok := cloud.Number(m, name)
				if !ok {
					return fmt.Errorf("%s of %s is %s, and a number was expected", name, group, value.Repr(v))
				}
				v = int(n)
			default:
				v = value.Str(v)
			}
			differs = p.Compare("attributes "+group+":"+name, old.Value(name), v) || differs
			merged.Set(name, v)
		}
		setAttributes(set, group, merged)
	}
	if differs {
		p.Then("attributes set", func(ctx context.Context) error {
			_, err := client.ModifyLoadBalancerAttributes(ctx, &elb.ModifyLoadBalancerAttributesInput{LoadBalancerName: &e.Name,
				LoadBalancerAttributes: set})
			return cloud.Failed("setting the attributes of load balancer", e.Name, err)
		})
	}
	return nil
}

// ShownAttributes returns the attributes of a load balancer with the names that the argument attributes uses.
func ShownAttributes(a *types.LoadBalancerAttributes) *value.Map {
	log, drain, cross, idle := a.AccessLog, a.ConnectionDraining, a.CrossZoneLoadBalancing, a.ConnectionSettings
	if log == nil {
		log = &types.AccessLog{}
	}
	if drain == nil {
		drain = &types.ConnectionDraining{}
	}
	if cross == nil {
		cross = &types.CrossZoneLoadBalancing{}
	}
	if idle == nil {
		idle = &types.ConnectionSettings{IdleTimeout: sdk.Int32(60)}
	}
	interval, timeout := 60, 300 // AWS's defaults
	if log.EmitInterval != nil {
		interval = int(*log.EmitInterval)
	}
	if drain.Timeout != nil {
		timeout = int(*drain.Timeout)
	}
	return value.NewMap(
		"access_log", value.NewMap("enabled", log.Enabled, "s3_bucket_name", sdk.ToString(log.S3BucketName),
			"s3_bucket_prefix", sdk.ToString(log.S3BucketPrefix), "emit_interval", interval),
		"connection_draining", value.NewMap("enabled", drain.Enabled, "timeout", timeout),
		"cross_zone_load_balancing", value.NewMap("enabled", cross.Enabled),
		"connecting_settings", value.NewMap("idle_timeout", int(sdk.ToInt32(idle.IdleTimeout))))
}

func setAttributes(set *types.LoadBalancerAttributes, group string, m *value.Map) {
	enabled := value.Truth(m.Value("enabled"))
	switch group {
	case "access_log":
		set.AccessLog = &types.AccessLog{Enabled: enabled}
		if n, ok := cloud.Number(m, "emit_interval"); ok && enabled {
			set.AccessLog.EmitInterval = &n
		}
		if v := cloud.Text(m, "s3_bucket_name"); v != "" {
			set.AccessLog.S3BucketName = &v
		}
		if v := cloud.Text(m, "s3_bucket_prefix"); v != "" {
			set.AccessLog.S3BucketPrefix = &v
		}
	case "connection_draining":
		set.ConnectionDraining = &types.ConnectionDraining{Enabled: enabled}
		if n, ok := cloud.Number(m, "timeout"); ok && enabled {
			set.ConnectionDraining.Timeout = &n
		}
	case "cross_zone_load_balancing":
		set.CrossZoneLoadBalancing = &types.CrossZoneLoadBalancing{Enabled: enabled}
	case "connecting_settings":
		n, _ := cloud.Number(m, "idle_timeout")
		set.ConnectionSettings = &types.ConnectionSettings{IdleTimeout: &n}
	}
}
