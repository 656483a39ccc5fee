package balancing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// policies plans the policies that listeners and back ends use.
func (e *elbPresent) policies(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	declared := slices.Concat(module.Items(e.Cloud.Option(e.PoliciesPillar)), module.Items(e.Policies))
	if len(declared) == 0 {
		return nil
	}
	client, now := ELBOf(a), map[string]bool{}
	if !p.Made && has.Policies != nil {
		out, err := client.DescribeLoadBalancerPolicies(ctx,
			&elb.DescribeLoadBalancerPoliciesInput{LoadBalancerName: &e.Name})
		if err != nil {
			return cloud.Failed("reading the policies of load balancer", e.Name, err)
		}
		for _, d := range out.PolicyDescriptions {
			now[sdk.ToString(d.PolicyName)] = true
		}
	}
	for _, item := range declared {
		m := cloud.MapOf(item)
		name, kind := cloud.Text(m, "policy_name"), cloud.Text(m, "policy_type")
		if now[name] {
			continue
		}
		p.Differ("policy "+name, nil, kind)
		p.Then("policy made", func(ctx context.Context) error {
			in := &elb.CreateLoadBalancerPolicyInput{LoadBalancerName: &e.Name, PolicyName: &name, PolicyTypeName: &kind}
			for key, v := range cloud.MapOf(m.Value("policy")).All() {
				text, err := cloud.AttributeText(v)
				if err != nil {
					return err
				}
				in.PolicyAttributes = append(in.PolicyAttributes, types.PolicyAttribute{AttributeName: sdk.String(value.Str(key)),
					AttributeValue: &text})
			}
			_, err := client.CreateLoadBalancerPolicy(ctx, in)
			return cloud.Failed("making a policy of load balancer", e.Name, err)
		})
	}
	return nil
}

// backends plans the policies of the ports of instances.
func (e *elbPresent) backends(_ context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	for _, item := range e.Backends {
		m := cloud.MapOf(item)
		port, ok := cloud.Number(m, "instance_port")
		if !ok {
			return diag.WithHint(errors.New("a back end lacks instance_port"), "give the port of the instances")
		}
		var now []string
		for _, b := range has.BackendServerDescriptions {
			if sdk.ToInt32(b.InstancePort) == port {
				now = b.PolicyNames
			}
		}
		want := cloud.Texts(m.Value("policies"))
		if !p.Compare(fmt.Sprintf("policies of instance port %d", port), cloud.Sorted(now), cloud.Sorted(want)) {
			continue
		}
		p.Then("policies of back end set", func(ctx context.Context) error {
			_, err := ELBOf(a).SetLoadBalancerPoliciesForBackendServer(ctx, &elb.SetLoadBalancerPoliciesForBackendServerInput{
				LoadBalancerName: &e.Name, InstancePort: &port, PolicyNames: want})
			return cloud.Failed("setting policies of load balancer", e.Name, err)
		})
	}
	return nil
}
