package identity

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// roleAbsent implements boto_iam_role.absent.
type roleAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (r *roleAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.Planned(r.look(ctx))
}

func (r *roleAbsent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := r.Cloud.Account(ctx, "iam", r.Arguments)
	if err != nil {
		return nil, err
	}
	all, err := Roles(ctx, a)
	has, there := all[r.Name]
	p := cloud.NewPlan()
	if !there || err != nil {
		return p, err
	}
	client := iamOf(a)
	p.Remove(sdk.ToString(has.RoleId), r.fields(has))
	for _, one := range has.RolePolicyList {
		p.Then("policy deleted", func(ctx context.Context) error {
			_, err := client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &r.Name, PolicyName: one.PolicyName})
			return cloud.Failed("deleting a policy of role", r.Name, err)
		})
	}
	for _, m := range has.AttachedManagedPolicies {
		p.Then("policy detached", func(ctx context.Context) error {
			_, err := client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &r.Name, PolicyArn: m.PolicyArn})
			return cloud.Failed("detaching a policy of role", r.Name, err)
		})
	}
	for _, i := range has.InstanceProfileList {
		p.Then("instance profile left", func(ctx context.Context) error {
			_, err := client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{RoleName: &r.Name,
				InstanceProfileName: i.InstanceProfileName})
			if err == nil && sdk.ToString(i.InstanceProfileName) == r.Name {
				_, err = client.DeleteInstanceProfile(ctx,
					&iam.DeleteInstanceProfileInput{InstanceProfileName: i.InstanceProfileName})
			}
			return cloud.Failed("removing the instance profile of role", r.Name, err)
		})
	}
	p.Then("role deleted", func(ctx context.Context) error {
		_, err := client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &r.Name})
		a.Forget("roles")
		return cloud.Failed("deleting role", r.Name, err)
	})
	return p, nil
}

// fields returns what is deleted with the role, as the fields of a plan.
func (r *roleAbsent) fields(has types.RoleDetail) *value.Map {
	var inline, managed, profiles []string
	for _, one := range has.RolePolicyList {
		inline = append(inline, sdk.ToString(one.PolicyName))
	}
	for _, one := range has.AttachedManagedPolicies {
		managed = append(managed, sdk.ToString(one.PolicyArn))
	}
	for _, one := range has.InstanceProfileList {
		profiles = append(profiles, sdk.ToString(one.InstanceProfileName))
	}
	return value.NewMap("role", r.Name, "policies", cloud.Sorted(inline), "managed_policies", cloud.Sorted(managed),
		"instance_profiles", cloud.Sorted(profiles))
}
