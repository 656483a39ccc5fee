package aws

import (
	"context"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func iamRoleTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &rolePresent{common: common{cloud: c}, InstanceProfile: true, DeletePolicies: true, DetachPolicies: true}
		},
		"absent": func() module.Resource { return &roleAbsent{common: common{cloud: c}} },
	}
}

func iamOf(a *account) *iam.Client { return iam.NewFromConfig(a.client("iam")) }

// roles are all roles of the account, with their policies and instance profiles, by name.
func roles(ctx context.Context, a *account) (map[string]types.RoleDetail, error) {
	return remember(a, "roles", func() (map[string]types.RoleDetail, error) {
		list, err := pages(func(next *string) ([]types.RoleDetail, *string, error) {
			page, err := iamOf(a).GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{Marker: next,
				Filter: []types.EntityType{types.EntityTypeRole}})
			if err != nil {
				return nil, nil, failed("listing the roles of", "the account", err)
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

// rolePresent is boto_iam_role.present: a role with its policies and its instance profile.
type rolePresent struct {
	common
	Name            string     `sls:"name"`
	Document        *value.Map `sls:"policy_document"`
	DocumentPillars []string   `sls:"policy_document_from_pillars"`
	Path            string     `sls:"path"`
	Policies        *value.Map `sls:"policies"`
	PolicyPillars   []string   `sls:"policies_from_pillars"`
	Managed         []string   `sls:"managed_policies"`
	InstanceProfile bool       `sls:"create_instance_profile"`
	DeletePolicies  bool       `sls:"delete_policies"`
	DetachPolicies  bool       `sls:"detach_policies"`
}

// RunsBeside implements module.Concurrent.
func (*rolePresent) RunsBeside() {}

// Check implements module.Resource.
func (r *rolePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.check(r.look(ctx))
}

const policyVersion = "2012-10-17"

// trust is who may take the role: EC2's instances by default.
func (r *rolePresent) trust() *value.Map {
	m := value.NewMap()
	for _, name := range r.DocumentPillars {
		m.Update(mapOf(r.cloud.setting(name)))
	}
	m.Update(r.Document)
	if m.Len() > 0 {
		return m
	}
	return value.NewMap("Version", policyVersion, "Statement", value.NewList(value.NewMap("Effect", "Allow", "Principal",
		value.NewMap("Service", "ec2.amazonaws.com"), "Action", "sts:AssumeRole")))
}

// policies are the policies that the role has in itself.
func (r *rolePresent) policies() *value.Map {
	m := value.NewMap()
	for _, name := range r.PolicyPillars {
		m.Update(mapOf(r.cloud.setting(name)))
	}
	m.Update(r.Policies)
	return m
}

func (r *rolePresent) look(ctx context.Context) (*plan, error) {
	a, err := r.cloud.account(ctx, "iam", r.Account)
	if err != nil {
		return nil, err
	}
	all, err := roles(ctx, a)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), newPlan()
	has, there := all[r.Name]
	trust, err := value.Dumps(r.trust(), value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	if !there {
		a.expect("role", r.Name)
		p.create(value.NewMap("role", r.Name, "policy_document", r.trust()))
		p.then("role made", func(ctx context.Context) error {
			in := &iam.CreateRoleInput{RoleName: &r.Name, AssumeRolePolicyDocument: &trust}
			if r.Path != "" {
				in.Path = &r.Path
			}
			// which a list shows later
			if _, err := client.CreateRole(ctx, in); err != nil && !code(err, "EntityAlreadyExists") {
				return failed("making role", r.Name, err)
			}
			return waitFor(ctx, "role "+r.Name+" is seen", soon, func(ctx context.Context) (bool, error) {
				_, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &r.Name})
				if code(err, "NoSuchEntity") {
					return false, nil
				}
				return err == nil, failed("reading role", r.Name, err)
			})
		})
	} else {
		old := document(sdk.ToString(has.AssumeRolePolicyDocument))
		if m := mapOf(old); r.Document.Len() == 0 && m != nil && text(m, "Version") == "2008-10-17" { // which Salt wrote
			m.Set("Version", policyVersion)
		}
		if !samePolicy(old, r.trust()) {
			p.differ("policy_document", old, r.trust())
			p.then("policy document set", func(ctx context.Context) error {
				_, err := client.UpdateAssumeRolePolicy(ctx,
					&iam.UpdateAssumeRolePolicyInput{RoleName: &r.Name, PolicyDocument: &trust})
				return failed("setting who may take role", r.Name, err)
			})
		}
		if r.Path != "" && sdk.ToString(has.Path) != r.Path {
			p.warnings = append(p.warnings, "the path is "+sdk.ToString(has.Path)+" and cannot be changed")
		}
	}
	if r.InstanceProfile {
		r.profile(p, client, has)
	}
	if err := r.inline(p, client, has); err != nil {
		return nil, err
	}
	r.attached(p, client, has)
	if len(p.steps) > 0 {
		p.then("roles read again", func(context.Context) error { a.forget("roles"); return nil })
	}
	return p, nil
}

// profile plans the instance profile.
func (r *rolePresent) profile(p *plan, client *iam.Client, has types.RoleDetail) {
	if slices.ContainsFunc(has.InstanceProfileList, func(i types.InstanceProfile) bool {
		return sdk.ToString(i.InstanceProfileName) == r.Name
	}) {
		return
	}
	p.differ("instance_profile", nil, r.Name)
	p.then("instance profile made", func(ctx context.Context) error {
		in := &iam.CreateInstanceProfileInput{InstanceProfileName: &r.Name}
		if r.Path != "" {
			in.Path = &r.Path
		}
		if _, err := client.CreateInstanceProfile(ctx, in); err != nil && !code(err, "EntityAlreadyExists") {
			return failed("making instance profile", r.Name, err)
		}
		return waitFor(ctx, "instance profile "+r.Name+" is seen", soon, func(ctx context.Context) (bool, error) {
			_, err := client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &r.Name,
				RoleName: &r.Name})
			switch {
			case code(err, "NoSuchEntity"):
				return false, nil
			case code(err, "LimitExceeded"): // it has a role, which a list shows later
				return true, r.inProfile(ctx, client, err)
			}
			return err == nil, failed("giving its role to instance profile", r.Name, err)
		})
	})
}

// inProfile is nil if the instance profile has the role, and otherwise why the role could not be added.
func (r *rolePresent) inProfile(ctx context.Context, client *iam.Client, why error) error {
	out, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &r.Name})
	if err == nil && slices.ContainsFunc(out.InstanceProfile.Roles, func(has types.Role) bool {
		return sdk.ToString(has.RoleName) == r.Name
	}) {
		return nil
	}
	return failed("giving its role to instance profile", r.Name, why)
}

// inline plans the policies that the role has in itself.
func (r *rolePresent) inline(p *plan, client *iam.Client, has types.RoleDetail) error {
	old, new, want := value.NewMap(), value.NewMap(), r.policies()
	for _, one := range has.RolePolicyList {
		name, text := sdk.ToString(one.PolicyName), document(sdk.ToString(one.PolicyDocument))
		switch {
		case !want.Has(name) && r.DeletePolicies:
			old.Set(name, text)
			p.then("policy "+name+" deleted", func(ctx context.Context) error {
				_, err := client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &r.Name, PolicyName: &name})
				return failed("deleting a policy of role", r.Name, err)
			})
		case want.Has(name) && !samePolicy(text, want.Value(name)):
			old.Set(name, text)
		case want.Has(name):
			want.Delete(name)
		}
	}
	for _, name := range want.Names() {
		new.Set(name, want.Value(name))
		text, err := attributeText(want.Value(name))
		if err != nil {
			return err
		}
		p.then("policy "+name+" set", func(ctx context.Context) error {
			_, err := client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &r.Name, PolicyName: &name,
				PolicyDocument: &text})
			return failed("setting a policy of role", r.Name, err)
		})
	}
	if old.Len()+new.Len() > 0 {
		p.differ("policies", old, new)
	}
	return nil
}

// attached plans the managed policies.
func (r *rolePresent) attached(p *plan, client *iam.Client, has types.RoleDetail) {
	var now []string
	for _, m := range has.AttachedManagedPolicies {
		arn := sdk.ToString(m.PolicyArn)
		now = append(now, arn)
		if r.DetachPolicies && !slices.ContainsFunc(r.Managed, func(want string) bool { return meansPolicy(want, arn) }) {
			p.then("policy detached", func(ctx context.Context) error {
				_, err := client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn})
				return failed("detaching a policy of role", r.Name, err)
			})
			p.differ("managed_policies", sorted(now), sorted(r.Managed))
		}
	}
	for _, want := range r.Managed {
		if slices.ContainsFunc(now, func(arn string) bool { return meansPolicy(want, arn) }) {
			continue
		}
		p.differ("managed_policies", sorted(now), sorted(r.Managed))
		p.then("policy attached", func(ctx context.Context) error {
			arn, err := policyARN(ctx, client, want)
			if err != nil {
				return err
			}
			_, err = client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn})
			return failed("attaching a policy to role", r.Name, err)
		})
	}
}

// meansPolicy reports whether a name or an ARN is that of a managed policy.
func meansPolicy(name, arn string) bool { return name == arn || strings.HasSuffix(arn, "/"+name) }

// policyARN is the ARN of a managed policy.
func policyARN(ctx context.Context, client *iam.Client, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	all, err := pages(func(next *string) ([]types.Policy, *string, error) {
		page, err := client.ListPolicies(ctx, &iam.ListPoliciesInput{Marker: next})
		if err != nil {
			return nil, nil, failed("looking for managed policy", name, err)
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
	return "", missing("managed policy", name, "boto_iam.policy_present")
}

// document is a policy as AWS gives it: JSON, written as in a URL.
func document(text string) any {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return text
	}
	return v
}

// roleAbsent is boto_iam_role.absent.
type roleAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (r *roleAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.check(r.look(ctx))
}

func (r *roleAbsent) look(ctx context.Context) (*plan, error) {
	a, err := r.cloud.account(ctx, "iam", r.Account)
	if err != nil {
		return nil, err
	}
	all, err := roles(ctx, a)
	has, there := all[r.Name]
	p := newPlan()
	if !there || err != nil {
		return p, err
	}
	client := iamOf(a)
	p.remove(value.NewMap("role", r.Name))
	for _, one := range has.RolePolicyList {
		p.then("policy deleted", func(ctx context.Context) error {
			_, err := client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &r.Name, PolicyName: one.PolicyName})
			return failed("deleting a policy of role", r.Name, err)
		})
	}
	for _, m := range has.AttachedManagedPolicies {
		p.then("policy detached", func(ctx context.Context) error {
			_, err := client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &r.Name, PolicyArn: m.PolicyArn})
			return failed("detaching a policy of role", r.Name, err)
		})
	}
	for _, i := range has.InstanceProfileList {
		p.then("instance profile left", func(ctx context.Context) error {
			_, err := client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{RoleName: &r.Name,
				InstanceProfileName: i.InstanceProfileName})
			if err == nil && sdk.ToString(i.InstanceProfileName) == r.Name {
				_, err = client.DeleteInstanceProfile(ctx,
					&iam.DeleteInstanceProfileInput{InstanceProfileName: i.InstanceProfileName})
			}
			return failed("removing the instance profile of role", r.Name, err)
		})
	}
	p.then("role deleted", func(ctx context.Context) error {
		_, err := client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &r.Name})
		a.forget("roles")
		return failed("deleting role", r.Name, err)
	})
	return p, nil
}
