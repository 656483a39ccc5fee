package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// KMSTable returns the state functions of boto_kms.
func KMSTable(c *cloud.Cloud) module.Table {
	return module.Table{"key_present": func() module.Resource {
		return &keyPresent{Common: cloud.Common{Cloud: c}, Enabled: true}
	}}
}

// keyPresent implements boto_kms.key_present: a key with an alias.
type keyPresent struct {
	cloud.Common
	Name        string       `sls:"name"`
	Policy      cloud.Policy `sls:"policy"`
	Description string       `sls:"description"`
	Usage       string       `sls:"key_usage"`
	Rotation    *bool        `sls:"key_rotation"`
	Enabled     bool         `sls:"enabled"`
	Grants      []any        `sls:"grants"`
	Manage      bool         `sls:"manage_grants"`
}

// Valid implements module.Validated.
func (k *keyPresent) Valid() error {
	if k.Manage || len(k.Grants) > 0 {
		return diag.Amazon.Hint(errors.New("grants of keys are not managed here"), "write what the grants allow into policy")
	}
	return nil
}

// RunsBeside implements module.Concurrent.
func (*keyPresent) RunsBeside() {}

// Check implements module.Resource.
func (k *keyPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return k.Planned(k.look(ctx))
}

// KMSOf returns a client of KMS.
func KMSOf(a *cloud.Account) *kms.Client { return kms.NewFromConfig(a.Client("kms")) }

func (k *keyPresent) alias() string { return "alias/" + strings.TrimPrefix(k.Name, "alias/") }

func (k *keyPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := k.Cloud.Account(ctx, "kms", k.Arguments)
	if err != nil {
		return nil, err
	}
	client, p, alias := KMSOf(a), cloud.NewPlan(), k.alias()
	policy, err := value.Dumps(k.Policy.Map, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	out, err := client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &alias})
	if cloud.HasCode(err, "NotFoundException") {
		p.Create(value.NewMap("key", k.Name, "description", k.Description, "policy", k.Policy.Map, "key_rotation",
			k.Rotation != nil && *k.Rotation, "enabled", k.Enabled))
		p.Then("key made", func(ctx context.Context) error { return k.create(ctx, client, policy) })
		return p, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading key", k.Name, err)
	}
	id := sdk.ToString(out.KeyMetadata.KeyId)
	if k.Description != "" && p.Compare("description", sdk.ToString(out.KeyMetadata.Description), k.Description) {
		p.Then("description set", func(ctx context.Context) error {
			_, err := client.UpdateKeyDescription(ctx, &kms.UpdateKeyDescriptionInput{KeyId: &id, Description: &k.Description})
			return cloud.Failed("setting the description of key", k.Name, err)
		})
	}
	if p.Compare("enabled", out.KeyMetadata.Enabled, k.Enabled) {
		p.Then("key enabled or disabled", func(ctx context.Context) error { return k.enable(ctx, client, id) })
	}
	if k.Policy.Map != nil {
		has, err := client.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: &id, PolicyName: sdk.String("default")})
		if err != nil {
			return nil, cloud.Failed("reading the policy of key", k.Name, err)
		}
		if old := Document(sdk.ToString(has.Policy)); !cloud.SamePolicy(old, k.Policy.Map) {
			p.Differ("policy", old, k.Policy.Map)
			p.Then("policy set", func(ctx context.Context) error {
				_, err := client.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{KeyId: &id, PolicyName: sdk.String("default"),
					Policy: &policy})
				return cloud.Failed("setting the policy of key", k.Name, err)
			})
		}
	}
	if k.Rotation == nil {
		return p, nil
	}
	rotation, err := client.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: &id})
	if err != nil && k.Enabled && out.KeyMetadata.Enabled {
		return nil, cloud.Failed("reading the rotation of key", k.Name, err)
	}
	if err == nil && p.Compare("key_rotation", rotation.KeyRotationEnabled, *k.Rotation) {
		p.Then("rotation set", func(ctx context.Context) error { return k.rotate(ctx, client, id) })
	}
	return p, nil
}

func (k *keyPresent) create(ctx context.Context, client *kms.Client, policy string) error {
	in := &kms.CreateKeyInput{Description: &k.Description, KeyUsage: types.KeyUsageType(k.Usage)}
	if k.Policy.Map != nil {
		in.Policy = &policy
	}
	out, err := client.CreateKey(ctx, in)
	if err != nil {
		return cloud.Failed("making key", k.Name, err)
	}
	id, alias := out.KeyMetadata.KeyId, k.alias()
	_, err = client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: &alias, TargetKeyId: id})
	if err != nil && !names(ctx, client, alias, *id) {
		return k.withdraw(ctx, client, *id, cloud.Failed("giving key its alias", k.Name, err))
	}
	if k.Rotation != nil && *k.Rotation {
		if err := k.rotate(ctx, client, *id); err != nil {
			return err
		}
	}
	if !k.Enabled {
		return k.enable(ctx, client, *id)
	}
	return nil
}

// names reports whether an alias names a key: only the answer to the request that gave it may be lost.
func names(ctx context.Context, client *kms.Client, alias, id string) bool {
	ctx, cancel := cloud.Uninterrupted(ctx)
	defer cancel()
	now, err := client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &alias})
	return err == nil && sdk.ToString(now.KeyMetadata.KeyId) == id
}

// withdraw schedules the deletion of a new key that got no alias: no run would find it, and each would make another.
func (k *keyPresent) withdraw(ctx context.Context, client *kms.Client, id string, why error) error {
	ctx, cancel := cloud.Uninterrupted(ctx)
	defer cancel()
	_, err := client.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: &id, PendingWindowInDays: sdk.Int32(7)})
	if err != nil {
		return diag.Amazon.Hint(errors.Join(why, cloud.Failed("scheduling the deletion of key", id, err)),
			"the key %s has no alias: give it alias/%s, or delete it, before the next run", id, strings.TrimPrefix(k.alias(),
				"alias/"))
	}
	return diag.Amazon.Hint(fmt.Errorf("%w; its new key %s is deleted in 7 days", why, id), "%s",
		cmp.Or(diag.HintOf(why), "correct that, and run it again"))
}

func (k *keyPresent) enable(ctx context.Context, client *kms.Client, id string) (err error) {
	if k.Enabled {
		_, err = client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: &id})
	} else {
		_, err = client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: &id})
	}
	return cloud.Failed("enabling or disabling key", k.Name, err)
}

func (k *keyPresent) rotate(ctx context.Context, client *kms.Client, id string) (err error) {
	if *k.Rotation {
		_, err = client.EnableKeyRotation(ctx, &kms.EnableKeyRotationInput{KeyId: &id})
	} else {
		_, err = client.DisableKeyRotation(ctx, &kms.DisableKeyRotationInput{KeyId: &id})
	}
	return cloud.Failed("setting the rotation of key", k.Name, err)
}
