package identity

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// inlinePolicies are the declared inline policies of a role, user or group, and the requests that change them.
type inlinePolicies struct {
	want         *value.Map // by name
	deleteOthers bool
	put          func(ctx context.Context, name, text string) error
	drop         func(ctx context.Context, name string) error
}

// plan plans the policies that differ from those of a role, user or group.
func (i inlinePolicies) plan(p *cloud.Plan, has []types.PolicyDetail) error {
	old, new := value.NewMap(), value.NewMap()
	for _, one := range has {
		name, text := sdk.ToString(one.PolicyName), Document(sdk.ToString(one.PolicyDocument))
		switch {
		case !i.want.Has(name) && i.deleteOthers:
			old.Set(name, text)
			p.Then("policy "+name+" deleted", func(ctx context.Context) error { return i.drop(ctx, name) })
		case i.want.Has(name) && !cloud.SamePolicy(text, i.want.Value(name)):
			old.Set(name, text)
		case i.want.Has(name):
			i.want.Delete(name)
		}
	}
	for _, name := range i.want.Names() {
		new.Set(name, i.want.Value(name))
		text, err := cloud.AttributeText(i.want.Value(name))
		if err != nil {
			return err
		}
		p.Then("policy "+name+" set", func(ctx context.Context) error { return i.put(ctx, name, text) })
	}
	if old.Len()+new.Len() > 0 {
		p.Differ("policies", old, new)
	}
	return nil
}

// declaredPolicies returns inline policies by name: those that values of the pillar have, and those of the declaration.
func declaredPolicies(c *cloud.Cloud, pillars []string, given cloud.Policies) (*value.Map, error) {
	all := value.NewMap()
	for _, name := range pillars {
		more, err := cloud.PoliciesOf(c.Option(name))
		if err != nil {
			return nil, fmt.Errorf("%s of the pillar: %w", name, err)
		}
		all.Update(more)
	}
	all.Update(given.Map)
	return all, nil
}
