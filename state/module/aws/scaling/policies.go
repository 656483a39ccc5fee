package scaling

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// policyFields returns the fields of a scaling policy.
func policyFields() cloud.Fields {
	return cloud.Fields{"name": cloud.Word, "adjustment_type": cloud.Word, "scaling_adjustment": cloud.Whole,
		"cooldown": cloud.Whole, "min_adjustment_step": cloud.Whole}
}

// policies plans the scaling policies: those of the pillar, overridden by those of the arguments.
func (g *asgPresent) policies(ctx context.Context, p *cloud.Plan, a *cloud.Account, _ *types.AutoScalingGroup) error {
	want, declared := value.NewMap(), g.Policies != nil
	for _, item := range slices.Concat(module.Items(g.Cloud.Option(g.PoliciesPillar)), g.Policies) {
		if err := policyFields().Check("the scaling policy "+value.Repr(item), item); err != nil {
			return err
		}
		m, declaredName := cloud.MapOf(item), cloud.Text(cloud.MapOf(item), "name")
		if declaredName == "" {
			return errors.New("a scaling policy lacks its name")
		}
		declared = true
		one := value.NewMap("adjustment_type", cloud.Text(m, "adjustment_type"))
		for _, name := range []string{"scaling_adjustment", "cooldown", "min_adjustment_step"} {
			if n, ok := cloud.Number(m, name); ok {
				one.Set(name, int(n))
			}
		}
		want.Set(declaredName, one)
		a.Expect("policy", g.Name+":"+declaredName)
	}
	if !declared {
		return nil
	}
	var now []types.ScalingPolicy
	var err error
	if !p.Made {
		if now, err = alarms.ScalingPolicies(ctx, a, g.Name); err != nil {
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
			if n != nil && (cloud.MapOf(want.Value(sdk.ToString(one.PolicyName))).Has(name) ||
				!want.Has(sdk.ToString(one.PolicyName))) {
				m.Set(name, int(*n))
			}
		}
		old.Set(sdk.ToString(one.PolicyName), m)
	}
	if !p.Compare("scaling_policies", old, want) {
		return nil
	}
	p.Then("scaling policies set", func(ctx context.Context) error {
		defer a.Forget("policies:" + g.Name)
		return g.setPolicies(ctx, a, old, want)
	})
	return nil
}

func (g *asgPresent) setPolicies(ctx context.Context, a *cloud.Account, old, want *value.Map) error {
	client := clientOf(a)
	for _, name := range want.Names() {
		m := cloud.MapOf(want.Value(name))
		if value.Equal(m, old.Value(name)) {
			continue
		}
		in := &autoscaling.PutScalingPolicyInput{AutoScalingGroupName: &g.Name, PolicyName: &name,
			AdjustmentType: sdk.String(cloud.Text(m, "adjustment_type"))}
		for field, to := range map[string]**int32{"scaling_adjustment": &in.ScalingAdjustment, "cooldown": &in.Cooldown,
			"min_adjustment_step": &in.MinAdjustmentMagnitude} {
			if n, ok := cloud.Number(m, field); ok {
				*to = &n
			}
		}
		if _, err := client.PutScalingPolicy(ctx, in); err != nil {
			return cloud.Failed("setting scaling policy", name, err)
		}
	}
	for _, name := range old.Names() {
		if !want.Has(name) {
			if _, err := client.DeletePolicy(ctx, &autoscaling.DeletePolicyInput{AutoScalingGroupName: &g.Name,
				PolicyName: &name}); err != nil {
				return cloud.Failed("deleting scaling policy", name, err)
			}
		}
	}
	return nil
}
