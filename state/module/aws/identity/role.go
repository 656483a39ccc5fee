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

// IAMRoleTable returns the state functions of boto_iam_role.
func IAMRoleTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &rolePresent{Common: cloud.Common{Cloud: c}, InstanceProfile: true, DeletePolicies: true,
				DetachPolicies: true}
		},
		"absent": func() module.Resource { return &roleAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

func iamOf(a *cloud.Account) *iam.Client { return iam.NewFromConfig(a.Client("iam")) }

// Roles returns all roles of the account, with their policies and instance profiles, by name.
func Roles(ctx context.Context, a *cloud.Account) (map[string]types.RoleDetail, error) {
	return cloud.Remember(a, "roles", func() (map[string]types.RoleDetail, error) {
		list, err := cloud.Pages(func(next *string) ([]types.RoleDetail, *string, error) {
			page, err := iamOf(a).GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{Marker: next,
				Filter: []types.EntityType{types.EntityTypeRole}})
			if err != nil {
				return nil, nil, cloud.Failed("listing the roles of", "the account", err)
			}
			return page.RoleDetailList, page.Marker, nil
		})
		all := map[string]types.RoleDetail{}
		for _, r := range list {
			all[sdk.ToString(r.RoleName)] = r
		}
		return all, err
	})
}

// rolePresent implements boto_iam_role.present: a role with its policies and its instance profile.
type rolePresent struct {
	cloud.Common
	Name            string         `sls:"name"`
	Document        cloud.Policy   `sls:"policy_document"`
	DocumentPillars []string       `sls:"policy_document_from_pillars"`
	Path            string         `sls:"path"`
	Policies        cloud.Policies `sls:"policies"`
	PolicyPillars   []string       `sls:"policies_from_pillars"`
	Managed         []string       `sls:"managed_policies"`
	InstanceProfile bool           `sls:"create_instance_profile"`
	DeletePolicies  bool           `sls:"delete_policies"`
	DetachPolicies  bool           `sls:"detach_policies"`
}

// RunsBeside implements module.Concurrent.
func (*rolePresent) RunsBeside() {}

// Check implements module.Resource.
func (r *rolePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.Planned(r.look(ctx))
}

const policyVersion = "2012-10-17"

// trust returns the policy that says who may assume the role. By default, it allows EC2.
func (r *rolePresent) trust() *value.Map {
	m := value.NewMap()
	for _, name := range r.DocumentPillars {
		m.Update(cloud.MapOf(r.Cloud.Option(name)))
	}
	m.Update(r.Document.Map)
	if m.Len() > 0 {
		return m
	}
	return value.NewMap("Version", policyVersion, "Statement", value.NewList(value.NewMap("Effect", "Allow", "Principal",
		value.NewMap("Service", "ec2.amazonaws.com"), "Action", "sts:AssumeRole")))
}

func (r *rolePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := r.Cloud.Account(ctx, "iam", r.Arguments)
	if err != nil {
		return nil, err
	}
	all, err := Roles(ctx, a)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), cloud.NewPlan()
	has, there := all[r.Name]
	trust, err := value.Dumps(r.trust(), value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	if there {
		r.drift(p, client, has, trust)
	} else {
		r.create(p, a, client, trust)
	}
	if r.InstanceProfile {
		r.profile(p, client, has)
	}
	if err := r.inline(p, client, has); err != nil {
		return nil, err
	}
	if err := r.attached(ctx, p, a, has); err != nil {
		return nil, err
	}
	if len(p.Steps) > 0 {
		p.Then("roles read again", func(context.Context) error { a.Forget("roles"); return nil })
	}
	return p, nil
}

// create plans to make a role that the list of roles does not show. The role may exist nevertheless, as the list shows
// new roles later than other requests do.
func (r *rolePresent) create(p *cloud.Plan, a *cloud.Account, client *iam.Client, trust string) {
	a.Expect("role", r.Name)
	p.Create(value.NewMap("role", r.Name, "policy_document", r.trust()))
	p.Then("role made", func(ctx context.Context) error {
		in := &iam.CreateRoleInput{RoleName: &r.Name, AssumeRolePolicyDocument: &trust}
		if r.Path != "" {
			in.Path = &r.Path
		}
		if _, err := client.CreateRole(ctx, in); err != nil && !cloud.HasCode(err, "EntityAlreadyExists") {
			return cloud.Failed("making role", r.Name, err)
		}
		return cloud.WaitFor(ctx, "role "+r.Name+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
			_, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &r.Name})
			if cloud.HasCode(err, "NoSuchEntity") {
				return false, nil
			}
			return err == nil, cloud.Failed("reading role", r.Name, err)
		})
	})
}

// drift plans the policy that says who may assume a role, and warns if its path differs, as AWS cannot change it.
func (r *rolePresent) drift(p *cloud.Plan, client *iam.Client, has types.RoleDetail, trust string) {
	old := Document(sdk.ToString(has.AssumeRolePolicyDocument))
	if m := cloud.MapOf(old); r.Document.Map.Len() == 0 && m != nil &&
		cloud.Text(m, "Version") == "2008-10-17" { // the version that Salt writes
		m.Set("Version", policyVersion)
	}
	if !cloud.SamePolicy(old, r.trust()) {
		p.Differ("policy_document", old, r.trust())
		p.Then("policy document set", func(ctx context.Context) error {
			_, err := client.UpdateAssumeRolePolicy(ctx,
				&iam.UpdateAssumeRolePolicyInput{RoleName: &r.Name, PolicyDocument: &trust})
			return cloud.Failed("setting who may take role", r.Name, err)
		})
	}
	if r.Path != "" && sdk.ToString(has.Path) != r.Path {
		p.Warnings = append(p.Warnings, "the path is "+sdk.ToString(has.Path)+" and cannot be changed")
	}
}

// profile plans to make an instance profile with the name of the role and to add the role to it, unless the role is in
// it.
func (r *rolePresent) profile(p *cloud.Plan, client *iam.Client, has types.RoleDetail) {
	if slices.ContainsFunc(has.InstanceProfileList, func(i types.InstanceProfile) bool {
		return sdk.ToString(i.InstanceProfileName) == r.Name
	}) {
		return
	}
	p.Differ("instance_profile", nil, r.Name)
	p.Then("instance profile made", func(ctx context.Context) error {
		in := &iam.CreateInstanceProfileInput{InstanceProfileName: &r.Name}
		if r.Path != "" {
			in.Path = &r.Path
		}
		if _, err := client.CreateInstanceProfile(ctx, in); err != nil && !cloud.HasCode(err, "EntityAlreadyExists") {
			return cloud.Failed("making instance profile", r.Name, err)
		}
		return cloud.WaitFor(ctx, "instance profile "+r.Name+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
			_, err := client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &r.Name,
				RoleName: &r.Name})
			switch {
			case cloud.HasCode(err, "NoSuchEntity"):
				return false, nil
			case cloud.HasCode(err, "LimitExceeded"): // it has a role that the list did not show yet
				return true, r.inProfile(ctx, client, err)
			}
			return err == nil, cloud.Failed("giving its role to instance profile", r.Name, err)
		})
	})
}

// inProfile returns nil if the instance profile has the role, and otherwise an error with the reason why the role could
// not be added.
func (r *rolePresent) inProfile(ctx context.Context, client *iam.Client, why error) error {
	out, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &r.Name})
	if err == nil && slices.ContainsFunc(out.InstanceProfile.Roles, func(has types.Role) bool {
		return sdk.ToString(has.RoleName) == r.Name
	}) {
		return nil
	}
	return cloud.Failed("giving its role to instance profile", r.Name, why)
}
