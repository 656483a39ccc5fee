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
	want, err := declaredPolicies(r.Cloud, r.PolicyPillars, r.Policies)
	if err != nil {
		return err
	}
	return inlinePolicies{want, r.DeletePolicies, func(ctx context.Context, name, text string) error {
		_, err := client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &r.Name, PolicyName: &name,
			PolicyDocument: &text})
		return cloud.Failed("setting a policy of role", r.Name, err)
	}, func(ctx context.Context, name string) error {
		_, err := client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &r.Name, PolicyName: &name})
		return cloud.Failed("deleting a policy of role", r.Name, err)
	}}.plan(p, has.RolePolicyList)
}

// attached plans the managed policies of the role.
func (r *rolePresent) attached(ctx context.Context, p *cloud.Plan, a *cloud.Account, has types.RoleDetail) error {
	var now []string
	client := iamOf(a)
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
		if _, err := policyARN(ctx, a, want); err != nil {
			return err
		}
		p.Differ("managed_policies", cloud.Sorted(now), cloud.Sorted(r.Managed))
		p.Then("policy attached", func(ctx context.Context) error {
			arn, err := policyARN(ctx, a, want)
			if err != nil {
				return err
			}
			_, err = client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn})
			return cloud.Failed("attaching a policy to role", r.Name, err)
		})
	}
	return nil
}

// meansPolicy reports whether a name or an ARN denotes the managed policy with an ARN.
func meansPolicy(name, arn string) bool { return name == arn || strings.HasSuffix(arn, "/"+name) }

// managedPolicies returns the ARNs of all managed policies that the account can use, by name.
func managedPolicies(ctx context.Context, a *cloud.Account) (map[string][]string, error) {
	return cloud.Remember(a, "managed policies", func() (map[string][]string, error) {
		all := map[string][]string{}
		_, err := cloud.Pages(func(next *string) ([]struct{}, *string, error) {
			page, err := iamOf(a).ListPolicies(ctx, &iam.ListPoliciesInput{Marker: next, MaxItems: sdk.Int32(1000)})
			if err != nil {
				return nil, nil, cloud.Failed("listing the managed policies of", "the account", err)
			}
			for _, p := range page.Policies {
				name := sdk.ToString(p.PolicyName)
				all[name] = append(all[name], sdk.ToString(p.Arn))
			}
			return nil, page.Marker, nil
		})
		return all, err
	})
}

// policyARN returns the ARN of the managed policy with a name, or cloud.Later if the run makes it. It returns an ARN
// unchanged.
func policyARN(ctx context.Context, a *cloud.Account, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	all, err := managedPolicies(ctx, a)
	if err != nil {
		return "", err
	}
	arn, err := cloud.Only("policy", name, all[name], func(arn *string) *string { return arn }, "give the ARN")
	switch {
	case err != nil:
		return "", err
	case arn != nil:
		return *arn, nil
	case a.Expects("managed policy", name):
		return cloud.Later, nil
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
