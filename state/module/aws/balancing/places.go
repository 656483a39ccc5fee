package balancing

import (
	"context"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
)

// places plans the availability zones or subnets of an existing load balancer.
func (e *elbPresent) places(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	client := ELBOf(a)
	want, old, field := e.Zones, has.AvailabilityZones, "availability_zones"
	if len(e.Subnets)+len(e.SubnetNames) > 0 {
		ids, err := network.SubnetIDs(ctx, a, e.Subnets, e.SubnetNames)
		if err != nil {
			return err
		}
		want, old, field = ids, has.Subnets, "subnets"
	}
	if p.Made || len(want) == 0 || !p.Compare(field, cloud.Sorted(old), cloud.Sorted(want)) {
		return nil
	}
	add, drop := cloud.Apart(old, want)
	p.Then(field+" set", func(ctx context.Context) (err error) {
		switch {
		case field == "subnets" && len(add) > 0:
			_, err = client.AttachLoadBalancerToSubnets(ctx, &elb.AttachLoadBalancerToSubnetsInput{LoadBalancerName: &e.Name,
				Subnets: add})
		case len(add) > 0:
			_, err = client.EnableAvailabilityZonesForLoadBalancer(ctx, &elb.EnableAvailabilityZonesForLoadBalancerInput{
				LoadBalancerName: &e.Name, AvailabilityZones: add})
		}
		if err != nil {
			return cloud.Failed("adding "+field+" to load balancer", e.Name, err)
		}
		switch {
		case field == "subnets" && len(drop) > 0:
			_, err = client.DetachLoadBalancerFromSubnets(ctx, &elb.DetachLoadBalancerFromSubnetsInput{LoadBalancerName: &e.Name,
				Subnets: drop})
		case len(drop) > 0:
			_, err = client.DisableAvailabilityZonesForLoadBalancer(ctx, &elb.DisableAvailabilityZonesForLoadBalancerInput{
				LoadBalancerName: &e.Name, AvailabilityZones: drop})
		}
		return cloud.Failed("removing "+field+" of load balancer", e.Name, err)
	})
	return nil
}

// groups plans the security groups of an existing load balancer.
func (e *elbPresent) groups(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	if p.Made || len(e.Groups) == 0 {
		return nil
	}
	_, vpc, err := e.wantedGroups(ctx, a)
	if err != nil {
		return err
	}
	differs, err := network.CompareGroups(ctx, p, a, vpc, has.SecurityGroups, e.Groups)
	if !differs || err != nil {
		return err
	}
	p.Then("security groups set", func(ctx context.Context) error {
		ids, _, err := e.wantedGroups(ctx, a)
		if err != nil {
			return err
		}
		_, err = ELBOf(a).ApplySecurityGroupsToLoadBalancer(ctx, &elb.ApplySecurityGroupsToLoadBalancerInput{
			LoadBalancerName: &e.Name, SecurityGroups: ids})
		return cloud.Failed("setting the security groups of load balancer", e.Name, err)
	})
	return nil
}
