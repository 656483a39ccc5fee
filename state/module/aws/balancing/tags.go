package balancing

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tags plans the tags of an existing load balancer.
func (e *elbPresent) tags(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	_ *types.LoadBalancerDescription) error {
	if e.Tags == nil || p.Made {
		return nil
	}
	client := ELBOf(a)
	out, err := client.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: []string{e.Name}})
	if err != nil {
		return cloud.Failed("reading the tags of load balancer", e.Name, err)
	}
	has := map[string]string{}
	for _, d := range out.TagDescriptions {
		for _, t := range d.Tags {
			has[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
		}
	}
	set, gone := cloud.TagDrift(p, has, e.Tags)
	if set.Len() > 0 {
		p.Then("tags set", func(ctx context.Context) error {
			in := &elb.AddTagsInput{LoadBalancerNames: []string{e.Name}}
			for key, v := range set.All() {
				in.Tags = append(in.Tags, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
			}
			_, err := client.AddTags(ctx, in)
			return cloud.Failed("tagging load balancer", e.Name, err)
		})
	}
	if len(gone) > 0 {
		p.Then("tags removed", func(ctx context.Context) error {
			in := &elb.RemoveTagsInput{LoadBalancerNames: []string{e.Name}}
			for _, key := range gone {
				in.Tags = append(in.Tags, types.TagKeyOnly{Key: &key})
			}
			_, err := client.RemoveTags(ctx, in)
			return cloud.Failed("removing tags of load balancer", e.Name, err)
		})
	}
	return nil
}
