package identity

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// inline plans the inline policies of a user or group.
func (m *member) inline(p *cloud.Plan, client *iam.Client, has Detail) error {
	if m.Policies.Map == nil && len(m.PolicyPillars) == 0 {
		return nil
	}
	want, err := declaredPolicies(m.Cloud, m.PolicyPillars, m.Policies)
	if err != nil {
		return err
	}
	return inlinePolicies{want, m.DeletePolicies, func(ctx context.Context, name, text string) (err error) {
		if m.user {
			_, err = client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &m.Name, PolicyName: &name,
				PolicyDocument: &text})
		} else {
			_, err = client.PutGroupPolicy(ctx, &iam.PutGroupPolicyInput{GroupName: &m.Name, PolicyName: &name,
				PolicyDocument: &text})
		}
		return cloud.Failed("setting a policy of "+m.kind(), m.Name, err)
	}, func(ctx context.Context, name string) error { return m.drop(ctx, client, name) }}.plan(p, has.inline)
}

func (m *member) drop(ctx context.Context, client *iam.Client, policy string) (err error) {
	if m.user {
		_, err = client.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &m.Name, PolicyName: &policy})
	} else {
		_, err = client.DeleteGroupPolicy(ctx, &iam.DeleteGroupPolicyInput{GroupName: &m.Name, PolicyName: &policy})
	}
	return cloud.Failed("deleting a policy of "+m.kind(), m.Name, err)
}

// attach plans the managed policies, if they are declared.
func (m *member) attach(ctx context.Context, p *cloud.Plan, a *cloud.Account, has Detail) error {
	if m.Managed == nil {
		return nil
	}
	client := iamOf(a)
	var now, gone []string
	for _, one := range has.attached {
		arn := sdk.ToString(one.PolicyArn)
		now = append(now, arn)
		if !slices.ContainsFunc(m.Managed, func(want string) bool { return meansPolicy(want, arn) }) {
			gone = append(gone, arn)
		}
	}
	add := slices.DeleteFunc(slices.Clone(m.Managed), func(want string) bool {
		return slices.ContainsFunc(now, func(arn string) bool { return meansPolicy(want, arn) })
	})
	if len(add)+len(gone) == 0 {
		return nil
	}
	for _, name := range add {
		if _, err := policyARN(ctx, a, name); err != nil {
			return err
		}
	}
	p.Differ("managed_policies", cloud.Sorted(now), cloud.Sorted(m.Managed))
	p.Then("managed policies set", func(ctx context.Context) error {
		for _, name := range add {
			arn, err := policyARN(ctx, a, name)
			if err == nil && m.user {
				_, err = client.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &m.Name, PolicyArn: &arn})
			} else if err == nil {
				_, err = client.AttachGroupPolicy(ctx, &iam.AttachGroupPolicyInput{GroupName: &m.Name, PolicyArn: &arn})
			}
			if err != nil {
				return cloud.Failed("attaching a policy to "+m.kind(), m.Name, err)
			}
		}
		return m.detach(ctx, client, gone)
	})
	return nil
}

func (m *member) detach(ctx context.Context, client *iam.Client, arns []string) (err error) {
	for _, arn := range arns {
		if m.user {
			_, err = client.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: &m.Name, PolicyArn: &arn})
		} else {
			_, err = client.DetachGroupPolicy(ctx, &iam.DetachGroupPolicyInput{GroupName: &m.Name, PolicyArn: &arn})
		}
		if err != nil {
			return cloud.Failed("detaching a policy of "+m.kind(), m.Name, err)
		}
	}
	return nil
}
