package identity

import (
	"context"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// inline plans the inline policies of the role.
func (r *rolePresent) inline(p *cloud.Plan, client *iam.Client, has types.RoleDetail) error {
	old, new, want := value.NewMap(), value.NewMap(), r.policies()
	for _, one := range has.RolePolicyList {
		name, text := sdk.ToString(one.PolicyName), Document(sdk.ToString(one.PolicyDocument))
		switch {
		case !want.Has(name) && r.DeletePolicies:
			old.Set(name, text)
			p.Then("policy "+name+" deleted", func(ctx context.Context) error {
				_, err := client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &r.Name, PolicyName: &name})
				return cloud.Failed("deleting a policy of role", r.Name, err)
			})
		case want.Has(name) && !cloud.SamePolicy(text, want.Value(name)):
			old.Set(name, text)
		case want.Has(name):
			want.Delete(name)
		}
	}
	for _, name := range want.Names() {
		new.Set(name, want.Value(name))
		text, err := cloud.AttributeText(want.Value(name))
		if err != nil {
			return err
		}
		p.Then("policy "+name+" set", func(ctx context.Context) error {
			_, err := client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &r.Name, PolicyName: &name,
				PolicyDocument: &text})
			return cloud.Failed("setting a policy of role", r.Name, err)
		})
	}
	if old.Len()+new.Len() > 0 {
		p.Differ("policies", old, new)
	}
	return nil
}

// attached plans the managed policies of the role.
func (r *rolePresent) attached(p *cloud.Plan, client *iam.Client, has types.RoleDetail) {
	var now []string
	for _, m := range has.AttachedManagedPolicies {
		arn := sdk.ToString(m.PolicyArn)
		now = append(now, arn)
		if r.DetachPolicies && !slices.ContainsFunc(r.Managed, func(want string) bool { return meansPolicy(want, arn) }) {
			p.Then("policy detached", func(ctx context.Context) error {
				_, err := client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn})
				return cloud.Failed("detaching a policy of role", r.Name, err)
			})
			p.Differ("managed_policies", cloud.Sorted(now), cloud.Sorted(r.Managed))
		}
	}
	for _, want := range r.Managed {
		if slices.ContainsFunc(now, func(arn string) bool { return meansPolicy(want, arn) }) {
			continue
		}
		p.Differ("managed_policies", cloud.Sorted(now), cloud.Sorted(r.Managed))
		p.Then("policy attached", func(ctx context.Context) error {
			arn, err := policyARN(ctx, client, want)
			if err != nil {
				return err
			}
			_, err = client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn})
			return cloud.Failed("attaching a policy to role", r.Name, err)
		})
	}
}

// meansPolicy reports whether a name or an ARN denotes the managed policy with an ARN.
func meansPolicy(name, arn string) bool { return name == arn || strings.HasSuffix(arn, "/"+name) }

// policyARN returns the ARN of the managed policy with a name. It returns an ARN unchanged.
func policyARN(ctx context.Context, client *iam.Client, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	all, err := cloud.Pages(func(next *string) ([]types.Policy, *string, error) {
		page, err := client.ListPolicies(ctx, &iam.ListPoliciesInput{Marker: next})
		if err != nil {
			return nil, nil, cloud.Failed("looking for managed policy", name, err)
		}
		return page.Policies, page.Marker, nil
	})
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if sdk.ToString(p.PolicyName) == name {
			return sdk.ToString(p.Arn), nil
		}
	}
	return "", cloud.Missing("managed policy", name, "boto_iam.policy_present")
}

// Document decodes a policy as AWS returns it, as JSON with URL escapes. It returns the text if that is not JSON.
func Document(text string) any {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return text
	}
	return v
}
