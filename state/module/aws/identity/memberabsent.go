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

// memberAbsent implements boto_iam.user_absent and group_absent.
type memberAbsent struct {
	member
	DeleteKeys    bool `sls:"delete_keys"`
	DeleteDevices bool `sls:"delete_mfa_devices"`
	DeleteProfile bool `sls:"delete_profile"`
}

// Check implements module.Resource.
func (m *memberAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := m.Cloud.Account(ctx, "iam", m.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	all, err := Members(ctx, a)
	has, there := all[m.kind()+" "+m.Name]
	if there && err == nil {
		fields, lost := m.parts(ctx, iamOf(a), has, all)
		if lost != nil {
			return module.Diff{}, lost
		}
		p.Remove(has.id, fields)
		p.Then(m.kind()+" deleted", func(ctx context.Context) error {
			defer a.Forget("members")
			return m.remove(ctx, iamOf(a), has, all)
		})
	}
	return m.Planned(p, err)
}

// memberships returns the pairs of a group and a user that end with the user or group.
func (m *memberAbsent) memberships(has Detail, all map[string]Detail) (pairs [][2]string) {
	for name, d := range all {
		if user, ok := strings.CutPrefix(name, "user "); ok && !m.user && slices.Contains(d.Groups, m.Name) {
			pairs = append(pairs, [2]string{m.Name, user})
		}
	}
	for _, group := range has.Groups {
		pairs = append(pairs, [2]string{group, m.Name})
	}
	return pairs
}

// parts returns what is deleted with the user or group, as the fields of a plan.
func (m *memberAbsent) parts(ctx context.Context, client *iam.Client, has Detail,
	all map[string]Detail) (*value.Map, error) {
	var policies, pairs []string
	for _, one := range has.inline {
		policies = append(policies, sdk.ToString(one.PolicyName))
	}
	for _, one := range has.attached {
		policies = append(policies, sdk.ToString(one.PolicyArn))
	}
	for _, one := range m.memberships(has, all) {
		pairs = append(pairs, one[1]+" in "+one[0])
	}
	fields := value.NewMap(m.kind(), m.Name, "policies", cloud.Sorted(policies), "memberships", cloud.Sorted(pairs))
	return fields, m.credentials(ctx, client, fields)
}

// credentials adds the access keys and the MFA devices that are deleted with a user to the fields of a plan.
func (m *memberAbsent) credentials(ctx context.Context, client *iam.Client, fields *value.Map) error {
	if m.user && m.DeleteKeys {
		ids, _, err := accessKeys(ctx, client, m.Name)
		if err != nil {
			return err
		}
		fields.Set("access_keys", cloud.Sorted(ids))
	}
	if !m.user || !m.DeleteDevices {
		return nil
	}
	list, err := m.devices(ctx, client)
	var devices []string
	for _, one := range list {
		devices = append(devices, sdk.ToString(one.SerialNumber))
	}
	fields.Set("mfa_devices", cloud.Sorted(devices))
	return err
}

// devices returns the MFA devices of a user.
func (m *memberAbsent) devices(ctx context.Context, client *iam.Client) ([]types.MFADevice, error) {
	return cloud.Pages(func(next *string) ([]types.MFADevice, *string, error) {
		page, err := client.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: &m.Name, Marker: next})
		if err != nil {
			return nil, nil, cloud.Failed("listing the MFA devices of user", m.Name, err)
		}
		return page.MFADevices, page.Marker, nil
	})
}

// remove deletes a user or group. It first removes its policies and memberships, and the credentials of a user.
func (m *memberAbsent) remove(ctx context.Context, client *iam.Client, has Detail, all map[string]Detail) error {
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
	for _, one := range m.memberships(has, all) {
		if _, err := client.RemoveUserFromGroup(ctx,
			&iam.RemoveUserFromGroupInput{GroupName: &one[0], UserName: &one[1]}); err != nil {
			return cloud.Failed("removing a user of group", one[0], err)
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
	return cloud.Failed("deleting "+m.kind(), m.Name, err)
}

// unlink deletes the access keys, the password and the MFA devices of a user, as far as the arguments allow. AWS does
// not delete a user that has any of them.
func (m *memberAbsent) unlink(ctx context.Context, client *iam.Client) error {
	if m.DeleteKeys {
		ids, _, err := accessKeys(ctx, client, m.Name)
		if err == nil {
			err = deleteKeys(ctx, client, m.Name, ids)
		}
		if err != nil {
			return err
		}
	}
	if m.DeleteProfile {
		has, err := signsIn(ctx, client, m.Name)
		if has && err == nil {
			_, err = client.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: &m.Name})
		}
		if err != nil {
			return cloud.Failed("deleting the password of user", m.Name, err)
		}
	}
	if !m.DeleteDevices {
		return nil
	}
	devices, err := m.devices(ctx, client)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if _, err := client.DeactivateMFADevice(ctx,
			&iam.DeactivateMFADeviceInput{UserName: &m.Name, SerialNumber: d.SerialNumber}); err != nil {
			return cloud.Failed("deactivating an MFA device of user", m.Name, err)
		}
	}
	return nil
}
