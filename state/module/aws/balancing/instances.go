package balancing

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
)

// instances plans the instances, if they are declared.
func (e *elbPresent) instances(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	if e.InstanceIDs == nil && e.InstanceNames == nil {
		return nil
	}
	want := slices.Clone(e.InstanceIDs)
	for _, name := range e.InstanceNames {
		all, err := compute.InstancesOf(ctx, a, a.Called("instance", name), "")
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return cloud.Missing("instance", name, "boto_ec2.instance_present")
		}
		for _, i := range all {
			want = append(want, sdk.ToString(i.InstanceId))
		}
	}
	return register(p, a, e.Name, has.Instances, want, true)
}

// register plans to register the wanted instances with a load balancer. If only is true, other instances are
// deregistered.
func register(p *cloud.Plan, a *cloud.Account, name string, has []types.Instance, want []string, only bool) error {
	var old []string
	var add, drop []types.Instance
	for _, i := range has {
		old = append(old, sdk.ToString(i.InstanceId))
		if only && !slices.Contains(want, sdk.ToString(i.InstanceId)) {
			drop = append(drop, i)
		}
	}
	for _, id := range want {
		if !slices.Contains(old, id) {
			add = append(add, types.Instance{InstanceId: &id})
		}
	}
	if len(add)+len(drop) == 0 {
		return nil
	}
	if !only {
		want, _ = cloud.Apart(nil, slices.Concat(old, want))
	}
	p.Differ("instances", cloud.Sorted(old), cloud.Sorted(want))
	p.Then("instances registered", func(ctx context.Context) (err error) {
		if len(add) > 0 {
			_, err = ELBOf(a).RegisterInstancesWithLoadBalancer(ctx,
				&elb.RegisterInstancesWithLoadBalancerInput{LoadBalancerName: &name, Instances: add})
		}
		if len(drop) > 0 && err == nil {
			_, err = ELBOf(a).DeregisterInstancesFromLoadBalancer(ctx,
				&elb.DeregisterInstancesFromLoadBalancerInput{LoadBalancerName: &name, Instances: drop})
		}
		return cloud.Failed("registering instances with load balancer", name, err)
	})
	return nil
}

// elbInstances implements boto_elb.register_instances.
type elbInstances struct {
	cloud.Common
	Name      string   `sls:"name"`
	Instances []string `sls:"instances,required"`
}

// Check implements module.Resource.
func (e *elbInstances) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := e.Cloud.Account(ctx, "elb", e.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := Describe(ctx, a, e.Name)
	switch {
	case err != nil:
	case has != nil:
		err = register(p, a, e.Name, has.Instances, e.Instances, false)
	case a.Expects("elb", e.Name):
		err = register(p, a, e.Name, nil, e.Instances, false)
	default:
		err = cloud.Missing("load balancer", e.Name, "boto_elb.present")
	}
	return e.Planned(p, err)
}
