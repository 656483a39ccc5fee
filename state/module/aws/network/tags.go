package network

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ec2Tags converts tags to the type of EC2.
func ec2Tags(tags *value.Map) (all []types.Tag) {
	for key, v := range tags.All() {
		all = append(all, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	return all
}

// tagsOf converts tags of EC2 to a map.
func tagsOf(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return m
}

// TagEC2 plans the tags of a resource of EC2. It plans nothing if want is nil.
func TagEC2(p *cloud.Plan, a *cloud.Account, id string, has []types.Tag, want *value.Map) {
	if want == nil {
		return
	}
	set, gone := cloud.TagDrift(p, tagsOf(has), want)
	if set.Len() > 0 {
		p.Then("tags set", func(ctx context.Context) error {
			_, err := EC2Of(a).CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(set)})
			return cloud.Failed("tagging", id, err)
		})
	}
	if len(gone) > 0 {
		p.Then("tags removed", func(ctx context.Context) error {
			var tags []types.Tag
			for _, key := range gone {
				tags = append(tags, types.Tag{Key: sdk.String(key)})
			}
			_, err := EC2Of(a).DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: tags})
			return cloud.Failed("removing tags of", id, err)
		})
	}
}

// Specs returns the tags, with the tag Name unless name is empty, that a new resource of EC2 gets, or nil if there are
// none.
func Specs(kind types.ResourceType, tags *value.Map, name string) []types.TagSpecification {
	all := value.NewMap()
	if name != "" {
		all.Set("Name", name)
	}
	all.Update(tags)
	if all.Len() == 0 {
		return nil
	}
	return []types.TagSpecification{{ResourceType: kind, Tags: ec2Tags(all)}}
}
