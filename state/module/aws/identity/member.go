package identity

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// member is a user or a group with its policies.
type member struct {
	cloud.Common
	user           bool
	Name           string         `sls:"name"`
	Path           string         `sls:"path"`
	Policies       cloud.Policies `sls:"policies"`
	PolicyPillars  []string       `sls:"policies_from_pillars"`
	Managed        []string       `sls:"managed_policies"`
	Users          []string       `sls:"users"`
	DeletePolicies bool           `sls:"delete_policies"`
}

func (m *member) kind() string {
	if m.user {
		return "user"
	}
	return "group"
}

// Detail has the policies of a user or a group, and the groups of a user.
type Detail struct {
	id       string
	inline   []types.PolicyDetail
	attached []types.AttachedPolicy
	Groups   []string // groups that a user is in
}

// Members returns all users and groups of the account, by the keys "user NAME" and "group NAME".
func Members(ctx context.Context, a *cloud.Account) (map[string]Detail, error) {
	return cloud.Remember(a, "members", func() (map[string]Detail, error) {
		all := map[string]Detail{}
		_, err := cloud.Pages(func(next *string) ([]struct{}, *string, error) {
			page, err := iamOf(a).GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{Marker: next,
				Filter: []types.EntityType{types.EntityTypeUser, types.EntityTypeGroup}})
			if err != nil {
				return nil, nil, cloud.Failed("listing the users and groups of", "the account", err)
			}
			for _, u := range page.UserDetailList {
				all["user "+sdk.ToString(u.UserName)] = Detail{sdk.ToString(u.UserId), u.UserPolicyList,
					u.AttachedManagedPolicies, u.GroupList}
			}
			for _, g := range page.GroupDetailList {
				all["group "+sdk.ToString(g.GroupName)] = Detail{sdk.ToString(g.GroupId), g.GroupPolicyList,
					g.AttachedManagedPolicies, nil}
			}
			return nil, page.Marker, nil
		})
		return all, err
	})
}

// memberPresent implements boto_iam.user_present and group_present.
type memberPresent struct {
	member
	Password string `sls:"password"`
}

// RunsBeside implements module.Concurrent.
func (*memberPresent) RunsBeside() {}

// Check implements module.Resource.
func (m *memberPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return m.Planned(m.look(ctx))
}

func (m *memberPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := m.Cloud.Account(ctx, "iam", m.Arguments)
	if err != nil {
		return nil, err
	}
	all, err := Members(ctx, a)
	if err != nil {
		return nil, err
	}
	client, p := iamOf(a), cloud.NewPlan()
	has, there := all[m.kind()+" "+m.Name]
	if !there {
		a.Expect(m.kind(), m.Name)
		p.Create(value.NewMap(m.kind(), m.Name))
		p.Then(m.kind()+" made", func(ctx context.Context) error { return m.create(ctx, client) })
	}
	if err := m.inline(p, client, has); err != nil {
		return nil, err
	}
	if err := m.password(ctx, p, client, there); err != nil {
		return nil, err
	}
	if err := m.attach(ctx, p, a, has); err != nil {
		return nil, err
	}
	if !m.user && m.Users != nil {
		if err := m.join(p, a, all); err != nil {
			return nil, err
		}
	}
	if len(p.Steps) > 0 {
		p.Then("users and groups read again", func(context.Context) error { a.Forget("members"); return nil })
	}
	return p, nil
}

// create makes a user or a group that the list does not show. It may exist nevertheless, as the list shows new ones
// later than other requests do.
func (m *member) create(ctx context.Context, client *iam.Client) (err error) {
	if m.user {
		_, err = client.CreateUser(ctx, &iam.CreateUserInput{UserName: &m.Name, Path: cloud.Optional(m.Path)})
	} else {
		_, err = client.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: &m.Name, Path: cloud.Optional(m.Path)})
	}
	if err != nil && !cloud.HasCode(err, "EntityAlreadyExists") {
		return cloud.Failed("making "+m.kind(), m.Name, err)
	}
	return cloud.WaitFor(ctx, m.kind()+" "+m.Name+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
		if m.user {
			_, err = client.GetUser(ctx, &iam.GetUserInput{UserName: &m.Name})
		} else {
			_, err = client.GetGroup(ctx, &iam.GetGroupInput{GroupName: &m.Name})
		}
		if cloud.HasCode(err, "NoSuchEntity") {
			return false, nil
		}
		return err == nil, cloud.Failed("reading "+m.kind(), m.Name, err)
	})
}

// join plans which users are in a group. It returns an error for a user that does not exist and that the run does not
// make.
func (m *member) join(p *cloud.Plan, a *cloud.Account, all map[string]Detail) error {
	var now []string
	for name, d := range all {
		if user, ok := strings.CutPrefix(name, "user "); ok && slices.Contains(d.Groups, m.Name) {
			now = append(now, user)
		}
	}
	if !p.Compare("users", cloud.Sorted(now), cloud.Sorted(m.Users)) {
		return nil
	}
	client := iamOf(a)
	add, drop := cloud.Apart(now, m.Users)
	for _, user := range add {
		if _, there := all["user "+user]; !there && !a.Expects("user", user) {
			return cloud.Missing("user", user, "boto_iam.user_present")
		}
	}
	p.Then("users set", func(ctx context.Context) error {
		for _, user := range add {
			if _, err := client.AddUserToGroup(ctx, &iam.AddUserToGroupInput{GroupName: &m.Name, UserName: &user}); err != nil {
				return cloud.Failed("adding a user to group", m.Name, err)
			}
		}
		for _, user := range drop {
			if _, err := client.RemoveUserFromGroup(ctx,
				&iam.RemoveUserFromGroupInput{GroupName: &m.Name, UserName: &user}); err != nil {
				return cloud.Failed("removing a user of group", m.Name, err)
			}
		}
		return nil
	})
	return nil
}
