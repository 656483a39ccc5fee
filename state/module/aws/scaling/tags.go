package scaling

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tagFields returns the fields of a tag of a group.
func tagFields() cloud.Fields {
	return cloud.Fields{"key": cloud.Word, "value": cloud.Anything, "propagate_at_launch": cloud.Anything}
}

// wantedTags returns the declared tags in the form of a request.
func (g *asgPresent) wantedTags() (tags []types.Tag, err error) {
	for _, item := range g.Tags {
		if err := tagFields().Check("the tag "+value.Repr(item), item); err != nil {
			return nil, err
		}
		m := cloud.MapOf(item)
		if cloud.Text(m, "key") == "" {
			return nil, diag.Amazon.Hint(fmt.Errorf("the tag %s lacks its key", value.Repr(item)),
				"write key, value and propagate_at_launch")
		}
		tags = append(tags, types.Tag{Key: sdk.String(cloud.Text(m, "key")), Value: sdk.String(cloud.Text(m, "value")),
			ResourceId:        &g.Name,
			ResourceType:      sdk.String("auto-scaling-group"),
			PropagateAtLaunch: sdk.Bool(value.Truth(m.Value("propagate_at_launch")))})
	}
	return tags, nil
}

// tags plans the tags of an existing group, and shows those of a new one.
func (g *asgPresent) tags(_ context.Context, p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup) error {
	tags, err := g.wantedTags()
	if g.Tags == nil || err != nil {
		return err
	}
	old, new := value.NewMap(), value.NewMap()
	for _, t := range has.Tags {
		if !strings.HasPrefix(sdk.ToString(t.Key), "aws:") {
			old.Set(sdk.ToString(t.Key), value.NewMap("value", sdk.ToString(t.Value), "propagate_at_launch",
				sdk.ToBool(t.PropagateAtLaunch)))
		}
	}
	for _, t := range tags {
		new.Set(*t.Key, value.NewMap("value", *t.Value, "propagate_at_launch", *t.PropagateAtLaunch))
	}
	if !p.Compare("tags", old, new) || p.Made {
		return nil
	}
	var gone []types.Tag
	for _, name := range old.Names() {
		if !new.Has(name) {
			gone = append(gone, types.Tag{Key: &name, ResourceId: &g.Name, ResourceType: sdk.String("auto-scaling-group")})
		}
	}
	p.Then("tags set", func(ctx context.Context) error {
		_, err := clientOf(a).CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: tags})
		if len(gone) > 0 && err == nil {
			_, err = clientOf(a).DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: gone})
		}
		return cloud.Failed("tagging group", g.Name, err)
	})
	return nil
}
