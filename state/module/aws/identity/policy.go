package identity

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// managedPolicy implements boto_iam.policy_present and policy_absent.
type managedPolicy struct {
	cloud.Common
	absent   bool
	Name     string       `sls:"name"`
	Document cloud.Policy `sls:"policy_document"`
	Path     string       `sls:"path"`
	Text     string       `sls:"description"`
}

// Check implements module.Resource.
func (m *managedPolicy) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return m.Planned(m.look(ctx))
}

func (m *managedPolicy) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := m.Cloud.Account(ctx, "iam", m.Arguments)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), cloud.NewPlan()
	all, err := cloud.Pages(func(next *string) ([]types.Policy, *string, error) {
		page, err := client.ListPolicies(ctx, &iam.ListPoliciesInput{Marker: next, Scope: types.PolicyScopeTypeLocal})
		if err != nil {
			return nil, nil, cloud.Failed("looking for policy", m.Name, err)
		}
		return page.Policies, page.Marker, nil
	})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(p types.Policy) bool { return sdk.ToString(p.PolicyName) == m.Name })
	document, err := value.Dumps(m.Document.Map, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	switch {
	case i < 0 && !m.absent:
		a.Expect("managed policy", m.Name)
		p.Create(value.NewMap("policy", m.Name, "policy_document", m.Document.Map))
		p.Then("policy made", func(ctx context.Context) error {
			in := &iam.CreatePolicyInput{PolicyName: &m.Name, PolicyDocument: &document}
			for field, v := range map[**string]string{&in.Path: m.Path, &in.Description: m.Text} {
				if v != "" {
					*field = &v
				}
			}
			if _, err := client.CreatePolicy(ctx, in); err != nil {
				return cloud.Failed("making policy", m.Name, err)
			}
			return m.seen(ctx, a)
		})
	case i < 0:
	case m.absent:
		p.Remove(sdk.ToString(all[i].PolicyId), value.NewMap("policy", m.Name))
		p.Then("policy deleted", func(ctx context.Context) error { return m.remove(ctx, client, all[i]) })
	default:
		return p, m.drift(ctx, p, client, all[i], document)
	}
	return p, nil
}

// seen waits until the list of policies shows the policy, so that states that attach it by its name find its ARN.
func (m *managedPolicy) seen(ctx context.Context, a *cloud.Account) error {
	return cloud.WaitFor(ctx, "policy "+m.Name+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
		a.Forget("managed policies")
		all, err := managedPolicies(ctx, a)
		return len(all[m.Name]) > 0, err
	})
}

// drift plans a new version of a policy if its document differs. AWS keeps five versions, so the oldest one that is not
// the default is deleted first.
func (m *managedPolicy) drift(ctx context.Context, p *cloud.Plan, client *iam.Client, has types.Policy,
	text string) error {
	out, err := client.GetPolicyVersion(ctx,
		&iam.GetPolicyVersionInput{PolicyArn: has.Arn, VersionId: has.DefaultVersionId})
	if err != nil {
		return cloud.Failed("reading policy", m.Name, err)
	}
	old := Document(sdk.ToString(out.PolicyVersion.Document))
	if cloud.SamePolicy(old, m.Document.Map) {
		return nil
	}
	p.Differ("policy_document", old, m.Document.Map)
	p.Then("policy version made", func(ctx context.Context) error {
		versions, err := client.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: has.Arn})
		if err != nil {
			return cloud.Failed("reading policy", m.Name, err)
		}
		if n := len(versions.Versions); n >= 5 {
			oldest := slices.MinFunc(versions.Versions, func(a, b types.PolicyVersion) int {
				if a.IsDefaultVersion != b.IsDefaultVersion {
					if a.IsDefaultVersion {
						return 1
					}
					return -1
				}
				return sdk.ToTime(a.CreateDate).Compare(sdk.ToTime(b.CreateDate))
			})
			if _, err := client.DeletePolicyVersion(ctx,
				&iam.DeletePolicyVersionInput{PolicyArn: has.Arn, VersionId: oldest.VersionId}); err != nil {
				return cloud.Failed("deleting a version of policy", m.Name, err)
			}
		}
		_, err = client.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: has.Arn, PolicyDocument: &text,
			SetAsDefault: true})
		return cloud.Failed("making a version of policy", m.Name, err)
	})
	return nil
}

func (m *managedPolicy) remove(ctx context.Context, client *iam.Client, has types.Policy) error {
	versions, err := client.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: has.Arn})
	if err != nil {
		return cloud.Failed("reading policy", m.Name, err)
	}
	for _, v := range versions.Versions {
		if v.IsDefaultVersion {
			continue
		}
		if _, err := client.DeletePolicyVersion(ctx,
			&iam.DeletePolicyVersionInput{PolicyArn: has.Arn, VersionId: v.VersionId}); err != nil {
			return cloud.Failed("deleting a version of policy", m.Name, err)
		}
	}
	_, err = client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: has.Arn})
	return cloud.Failed("deleting policy", m.Name, err)
}
