package scaling

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// balancers plans the load balancers and target groups of the group.
func (g *asgPresent) balancers(_ context.Context, p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup) error {
	if p.Made {
		if len(g.Balancers) > 0 {
			p.New.Set("load_balancers", cloud.Sorted(g.Balancers))
		}
		return nil
	}
	client := clientOf(a)
	if g.Balancers != nil && p.Compare("load_balancers", cloud.Sorted(has.LoadBalancerNames), cloud.Sorted(g.Balancers)) {
		add, drop := cloud.Apart(has.LoadBalancerNames, g.Balancers)
		p.Then("load balancers set", func(ctx context.Context) (err error) {
			if len(add) > 0 {
				_, err = client.AttachLoadBalancers(ctx, &autoscaling.AttachLoadBalancersInput{AutoScalingGroupName: &g.Name,
					LoadBalancerNames: add})
			}
			if len(drop) > 0 && err == nil {
				_, err = client.DetachLoadBalancers(ctx, &autoscaling.DetachLoadBalancersInput{AutoScalingGroupName: &g.Name,
					LoadBalancerNames: drop})
			}
			return cloud.Failed("setting the load balancers of group", g.Name, err)
		})
	}
	if g.TargetGroups != nil && p.Compare("target_group_arns", cloud.Sorted(has.TargetGroupARNs),
		cloud.Sorted(g.TargetGroups)) {
		add, drop := cloud.Apart(has.TargetGroupARNs, g.TargetGroups)
		p.Then("target groups set", func(ctx context.Context) (err error) {
			if len(add) > 0 {
				_, err = client.AttachLoadBalancerTargetGroups(ctx, &autoscaling.AttachLoadBalancerTargetGroupsInput{
					AutoScalingGroupName: &g.Name, TargetGroupARNs: add})
			}
			if len(drop) > 0 && err == nil {
				_, err = client.DetachLoadBalancerTargetGroups(ctx, &autoscaling.DetachLoadBalancerTargetGroupsInput{
					AutoScalingGroupName: &g.Name, TargetGroupARNs: drop})
			}
			return cloud.Failed("setting the target groups of group", g.Name, err)
		})
	}
	return nil
}
