package aws

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func iamTable(c *Cloud) module.Table {
	of := func(user, absent bool) func() module.Resource {
		return func() module.Resource {
			m := member{common: common{cloud: c}, user: user, DeletePolicies: true}
			if absent {
				return &memberAbsent{member: m, DeleteKeys: true, DeleteDevices: true, DeleteProfile: true}
			}
			return &memberPresent{member: m}
		}
	}
	policy := func(absent bool) func() module.Resource {
		return func() module.Resource { return &managedPolicy{common: common{cloud: c}, absent: absent} }
	}
	return module.Table{
		"user_present": of(true, false), "user_absent": of(true, true),
		"group_present": of(false, false), "group_absent": of(false, true),
		"policy_present": policy(false), "policy_absent": policy(true),
		"keys_present": func() module.Resource {
			return &keysPresent{common: common{cloud: c}, Format: "{2}\n{0}\n{3}\n{1}\n"}
		},
		"keys_absent":         func() module.Resource { return &keysAbsent{common: common{cloud: c}} },
		"account_policy":      func() module.Resource { return &passwordPolicy{common: common{cloud: c}} },
		"server_cert_present": func() module.Resource { return &serverCertificate{common: common{cloud: c}} },
		"server_cert_absent":  func() module.Resource { return &serverCertificate{common: common{cloud: c}, absent: true} },
	}
}

// member is a user or a group with its policies.
type member struct {
	common
	user           bool
	Name           string     `sls:"name"`
	Path           string     `sls:"path"`
	Policies       *value.Map `sls:"policies"`
	PolicyPillars  []string   `sls:"policies_from_pillars"`
	Managed        []string   `sls:"managed_policies"`
	Users          []string   `sls:"users"`
	DeletePolicies bool       `sls:"delete_policies"`
}

func (m *member) kind() string {
	if m.user {
		return "user"
	}
	return "group"
}

// detail is what an account has of a user or a group.
type detail struct {
	inline   []types.PolicyDetail
	attached []types.AttachedPolicy
	groups   []string // of a user
}

// members are all users and groups of the account, as "user NAME" and "group NAME".
func members(ctx context.Context, a *account) (map[string]detail, error) {
	return remember(a, "members", func() (map[string]detail, error) {
		all := map[string]detail{}
		_, err := pages(func(next *string) ([]struct{}, *string, error) {
			page, err := iamOf(a).GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{Marker: next,
				Filter: []types.EntityType{types.EntityTypeUser, types.EntityTypeGroup}})
			if err != nil {
				return nil, nil, failed("listing the users and groups of", "the account", err)
			}
			for _, u := range page.UserDetailList {
				all["user "+sdk.ToString(u.UserName)] = detail{u.UserPolicyList, u.AttachedManagedPolicies, u.GroupList}
			}
			for _, g := range page.GroupDetailList {
				all["group "+sdk.ToString(g.GroupName)] = detail{g.GroupPolicyList, g.AttachedManagedPolicies, nil}
			}
			return nil, page.Marker, nil
		})
		return all, err
	})
}

// memberPresent is boto_iam.user_present and group_present.
type memberPresent struct {
	member
	Password string `sls:"password"`
}

// RunsBeside implements module.Concurrent.
func (*memberPresent) RunsBeside() {}

// Check implements module.Resource.
func (m *memberPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return m.check(m.look(ctx))
}

func (m *memberPresent) look(ctx context.Context) (*plan, error) {
	a, err := m.cloud.account(ctx, "iam", m.Account)
	if err != nil {
		return nil, err
	}
	all, err := members(ctx, a)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), newPlan()
	has, there := all[m.kind()+" "+m.Name]
	if !there {
		p.create(value.NewMap(m.kind(), m.Name))
		p.then(m.kind()+" made", func(ctx context.Context) (err error) {
			var path *string
			if m.Path != "" {
				path = &m.Path
			}
			if m.user {
				_, err = client.CreateUser(ctx, &iam.CreateUserInput{UserName: &m.Name, Path: path})
			} else {
				_, err = client.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: &m.Name, Path: path})
			}
			return failed("making "+m.kind(), m.Name, err)
		})
	}
	if err := m.inline(p, client, has); err != nil {
		return nil, err
	}
	if err := m.password(ctx, p, client, there); err != nil {
		return nil, err
	}
	m.attach(p, client, has)
	if !m.user && m.Users != nil {
		m.join(p, client, all)
	}
	if len(p.steps) > 0 {
		p.then("users and groups read again", func(context.Context) error { a.forget("members"); return nil })
	}
	return p, nil
}

// inline plans the policies that a user or group has in itself.
func (m *member) inline(p *plan, client *iam.Client, has detail) error {
	want := value.NewMap()
	for _, name := range m.PolicyPillars {
		want.Update(mapOf(m.cloud.setting(name)))
	}
	want.Update(m.Policies)
	if m.Policies == nil && len(m.PolicyPillars) == 0 {
		return nil
	}
	old, new := value.NewMap(), value.NewMap()
	for _, one := range has.inline {
		name, text := sdk.ToString(one.PolicyName), document(sdk.ToString(one.PolicyDocument))
		switch {
		case !want.Has(name) && m.DeletePolicies:
			old.Set(name, text)
			p.then("policy "+name+" deleted", func(ctx context.Context) error { return m.drop(ctx, client, name) })
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
		p.then("policy "+name+" set", func(ctx context.Context) (err error) {
			if m.user {
				_, err = client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &m.Name, PolicyName: &name,
					PolicyDocument: &text})
			} else {
				_, err = client.PutGroupPolicy(ctx, &iam.PutGroupPolicyInput{GroupName: &m.Name, PolicyName: &name,
					PolicyDocument: &text})
			}
			return failed("setting a policy of "+m.kind(), m.Name, err)
		})
	}
	if old.Len()+new.Len() > 0 {
		p.differ("policies", old, new)
	}
	return nil
}

func (m *member) drop(ctx context.Context, client *iam.Client, policy string) (err error) {
	if m.user {
		_, err = client.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &m.Name, PolicyName: &policy})
	} else {
		_, err = client.DeleteGroupPolicy(ctx, &iam.DeleteGroupPolicyInput{GroupName: &m.Name, PolicyName: &policy})
	}
	return failed("deleting a policy of "+m.kind(), m.Name, err)
}

// attach plans the managed policies, if they are declared.
func (m *member) attach(p *plan, client *iam.Client, has detail) {
	if m.Managed == nil {
		return
	}
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
		return
	}
	p.differ("managed_policies", sorted(now), sorted(m.Managed))
	p.then("managed policies set", func(ctx context.Context) error {
		for _, name := range add {
			arn, err := policyARN(ctx, client, name)
			if err == nil && m.user {
				_, err = client.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &m.Name, PolicyArn: &arn})
			} else if err == nil {
				_, err = client.AttachGroupPolicy(ctx, &iam.AttachGroupPolicyInput{GroupName: &m.Name, PolicyArn: &arn})
			}
			if err != nil {
				return failed("attaching a policy to "+m.kind(), m.Name, err)
			}
		}
		return m.detach(ctx, client, gone)
	})
}

func (m *member) detach(ctx context.Context, client *iam.Client, arns []string) (err error) {
	for _, arn := range arns {
		if m.user {
			_, err = client.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: &m.Name, PolicyArn: &arn})
		} else {
			_, err = client.DetachGroupPolicy(ctx, &iam.DetachGroupPolicyInput{GroupName: &m.Name, PolicyArn: &arn})
		}
		if err != nil {
			return failed("detaching a policy of "+m.kind(), m.Name, err)
		}
	}
	return nil
}

// join plans the users of a group.
func (m *member) join(p *plan, client *iam.Client, all map[string]detail) {
	var now []string
	for name, d := range all {
		if user, ok := strings.CutPrefix(name, "user "); ok && slices.Contains(d.groups, m.Name) {
			now = append(now, user)
		}
	}
	if !p.compare("users", sorted(now), sorted(m.Users)) {
		return
	}
	add, drop := apart(now, m.Users)
	p.then("users set", func(ctx context.Context) error {
		for _, user := range add {
			if _, err := client.AddUserToGroup(ctx, &iam.AddUserToGroupInput{GroupName: &m.Name, UserName: &user}); err != nil {
				return failed("adding a user to group", m.Name, err)
			}
		}
		for _, user := range drop {
			if _, err := client.RemoveUserFromGroup(ctx,
				&iam.RemoveUserFromGroupInput{GroupName: &m.Name, UserName: &user}); err != nil {
				return failed("removing a user of group", m.Name, err)
			}
		}
		return nil
	})
}

// memberAbsent is boto_iam.user_absent and group_absent.
type memberAbsent struct {
	member
	DeleteKeys    bool `sls:"delete_keys"`
	DeleteDevices bool `sls:"delete_mfa_devices"`
	DeleteProfile bool `sls:"delete_profile"`
}

// Check implements module.Resource.
func (m *memberAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := m.cloud.account(ctx, "iam", m.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	all, err := members(ctx, a)
	has, there := all[m.kind()+" "+m.Name]
	if there && err == nil {
		p.remove(value.NewMap(m.kind(), m.Name))
		p.then(m.kind()+" deleted", func(ctx context.Context) error {
			defer a.forget("members")
			return m.remove(ctx, iamOf(a), has, all)
		})
	}
	return m.check(p, err)
}

// remove deletes a user or group, after what hangs on it.
func (m *memberAbsent) remove(ctx context.Context, client *iam.Client, has detail, all map[string]detail) error {
	for _, one := range has.inline {
		if err := m.drop(ctx, client, sdk.ToString(one.PolicyName)); err != nil {
			return err
		}
	}
	for _, one := range has.attached {
		if err := m.detach(ctx, client, []string{sdk.ToString(one.PolicyArn)}); err != nil {
			return err
		}
	}
	memberships := [][2]string{}
	for name, d := range all {
		if user, ok := strings.CutPrefix(name, "user "); ok && !m.user && slices.Contains(d.groups, m.Name) {
			memberships = append(memberships, [2]string{m.Name, user})
		}
	}
	for _, group := range has.groups {
		memberships = append(memberships, [2]string{group, m.Name})
	}
	for _, one := range memberships {
		if _, err := client.RemoveUserFromGroup(ctx,
			&iam.RemoveUserFromGroupInput{GroupName: &one[0], UserName: &one[1]}); err != nil {
			return failed("removing a user of group", one[0], err)
		}
	}
	var err error
	if m.user {
		if err := m.unlink(ctx, client); err != nil {
			return err
		}
		_, err = client.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &m.Name})
	} else {
		_, err = client.DeleteGroup(ctx, &iam.DeleteGroupInput{GroupName: &m.Name})
	}
	return failed("deleting "+m.kind(), m.Name, err)
}

// managedPolicy is boto_iam.policy_present and policy_absent.
type managedPolicy struct {
	common
	absent   bool
	Name     string     `sls:"name"`
	Document *value.Map `sls:"policy_document"`
	Path     string     `sls:"path"`
	Text     string     `sls:"description"`
}

// Check implements module.Resource.
func (m *managedPolicy) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return m.check(m.look(ctx))
}

func (m *managedPolicy) look(ctx context.Context) (*plan, error) {
	a, err := m.cloud.account(ctx, "iam", m.Account)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), newPlan()
	all, err := pages(func(next *string) ([]types.Policy, *string, error) {
		page, err := client.ListPolicies(ctx, &iam.ListPoliciesInput{Marker: next, Scope: types.PolicyScopeTypeLocal})
		if err != nil {
			return nil, nil, failed("looking for policy", m.Name, err)
		}
		return page.Policies, page.Marker, nil
	})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(p types.Policy) bool { return sdk.ToString(p.PolicyName) == m.Name })
	document, err := value.Dumps(m.Document, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	switch {
	case i < 0 && !m.absent:
		p.create(value.NewMap("policy", m.Name, "policy_document", m.Document))
		p.then("policy made", func(ctx context.Context) error {
			in := &iam.CreatePolicyInput{PolicyName: &m.Name, PolicyDocument: &document}
			for field, v := range map[**string]string{&in.Path: m.Path, &in.Description: m.Text} {
				if v != "" {
					*field = &v
				}
			}
			_, err := client.CreatePolicy(ctx, in)
			return failed("making policy", m.Name, err)
		})
	case i < 0:
	case m.absent:
		p.remove(value.NewMap("policy", m.Name))
		p.then("policy deleted", func(ctx context.Context) error { return m.remove(ctx, client, all[i]) })
	default:
		return p, m.drift(ctx, p, client, all[i], document)
	}
	return p, nil
}

// drift plans another version of a policy. AWS keeps five, so the oldest goes first.
func (m *managedPolicy) drift(ctx context.Context, p *plan, client *iam.Client, has types.Policy, text string) error {
	out, err := client.GetPolicyVersion(ctx,
		&iam.GetPolicyVersionInput{PolicyArn: has.Arn, VersionId: has.DefaultVersionId})
	if err != nil {
		return failed("reading policy", m.Name, err)
	}
	old := document(sdk.ToString(out.PolicyVersion.Document))
	if samePolicy(old, m.Document) {
		return nil
	}
	p.differ("policy_document", old, m.Document)
	p.then("policy version made", func(ctx context.Context) error {
		versions, err := client.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: has.Arn})
		if err != nil {
			return failed("reading policy", m.Name, err)
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
				return failed("deleting a version of policy", m.Name, err)
			}
		}
		_, err = client.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: has.Arn, PolicyDocument: &text,
			SetAsDefault: true})
		return failed("making a version of policy", m.Name, err)
	})
	return nil
}

func (m *managedPolicy) remove(ctx context.Context, client *iam.Client, has types.Policy) error {
	versions, err := client.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: has.Arn})
	if err != nil {
		return failed("reading policy", m.Name, err)
	}
	for _, v := range versions.Versions {
		if v.IsDefaultVersion {
			continue
		}
		if _, err := client.DeletePolicyVersion(ctx,
			&iam.DeletePolicyVersionInput{PolicyArn: has.Arn, VersionId: v.VersionId}); err != nil {
			return failed("deleting a version of policy", m.Name, err)
		}
	}
	_, err = client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: has.Arn})
	return failed("deleting policy", m.Name, err)
}
