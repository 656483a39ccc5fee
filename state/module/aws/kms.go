package aws

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func kmsTable(c *Cloud) module.Table {
	return module.Table{"key_present": func() module.Resource {
		return &keyPresent{common: common{cloud: c}, Enabled: true}
	}}
}

// keyPresent is boto_kms.key_present: a key under an alias.
type keyPresent struct {
	common
	Name        string     `sls:"name"`
	Policy      *value.Map `sls:"policy"`
	Description string     `sls:"description"`
	Usage       string     `sls:"key_usage"`
	Rotation    bool       `sls:"key_rotation"`
	Enabled     bool       `sls:"enabled"`
	Grants      []any      `sls:"grants"`
	Manage      bool       `sls:"manage_grants"`
}

// Valid implements module.Validated.
func (k *keyPresent) Valid() error {
	if k.Manage || len(k.Grants) > 0 {
		return diag.WithHint(errors.New("grants of keys are not managed here"), "write what the grants allow into policy")
	}
	return nil
}

// RunsBeside implements module.Concurrent.
func (*keyPresent) RunsBeside() {}

// Check implements module.Resource.
func (k *keyPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return k.check(k.look(ctx))
}

func kmsOf(a *account) *kms.Client { return kms.NewFromConfig(a.client("kms")) }

func (k *keyPresent) alias() string { return "alias/" + strings.TrimPrefix(k.Name, "alias/") }

func (k *keyPresent) look(ctx context.Context) (*plan, error) {
	a, err := k.cloud.account(ctx, "kms", k.Account)
	if err != nil {
		return nil, err
	}
	client, p, alias := kmsOf(a), newPlan(), k.alias()
	policy, err := value.Dumps(k.Policy, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	out, err := client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &alias})
	if code(err, "NotFoundException") {
		p.create(value.NewMap("key", k.Name, "description", k.Description, "policy", k.Policy, "key_rotation", k.Rotation,
			"enabled", k.Enabled))
		p.then("key made", func(ctx context.Context) error { return k.create(ctx, client, policy) })
		return p, nil
	}
	if err != nil {
		return nil, failed("reading key", k.Name, err)
	}
	id := sdk.ToString(out.KeyMetadata.KeyId)
	if k.Description != "" && p.compare("description", sdk.ToString(out.KeyMetadata.Description), k.Description) {
		p.then("description set", func(ctx context.Context) error {
			_, err := client.UpdateKeyDescription(ctx, &kms.UpdateKeyDescriptionInput{KeyId: &id, Description: &k.Description})
			return failed("setting the description of key", k.Name, err)
		})
	}
	if p.compare("enabled", out.KeyMetadata.Enabled, k.Enabled) {
		p.then("key enabled or disabled", func(ctx context.Context) error { return k.enable(ctx, client, id) })
	}
	if k.Policy != nil {
		has, err := client.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: &id, PolicyName: sdk.String("default")})
		if err != nil {
			return nil, failed("reading the policy of key", k.Name, err)
		}
		if old := document(sdk.ToString(has.Policy)); !samePolicy(old, k.Policy) {
			p.differ("policy", old, k.Policy)
			p.then("policy set", func(ctx context.Context) error {
				_, err := client.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{KeyId: &id, PolicyName: sdk.String("default"),
					Policy: &policy})
				return failed("setting the policy of key", k.Name, err)
			})
		}
	}
	rotation, err := client.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: &id})
	if err != nil && k.Enabled && out.KeyMetadata.Enabled {
		return nil, failed("reading the rotation of key", k.Name, err)
	}
	if err == nil && p.compare("key_rotation", rotation.KeyRotationEnabled, k.Rotation) {
		p.then("rotation set", func(ctx context.Context) error { return k.rotate(ctx, client, id) })
	}
	return p, nil
}

func (k *keyPresent) create(ctx context.Context, client *kms.Client, policy string) error {
	in := &kms.CreateKeyInput{Description: &k.Description, KeyUsage: types.KeyUsageType(k.Usage)}
	if k.Policy != nil {
		in.Policy = &policy
	}
	out, err := client.CreateKey(ctx, in)
	if err != nil {
		return failed("making key", k.Name, err)
	}
	id, alias := out.KeyMetadata.KeyId, k.alias()
	if _, err := client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: &alias, TargetKeyId: id}); err != nil {
		return failed("giving key its alias", k.Name, err)
	}
	if k.Rotation {
		if err := k.rotate(ctx, client, *id); err != nil {
			return err
		}
	}
	if !k.Enabled {
		return k.enable(ctx, client, *id)
	}
	return nil
}

func (k *keyPresent) enable(ctx context.Context, client *kms.Client, id string) (err error) {
	if k.Enabled {
		_, err = client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: &id})
	} else {
		_, err = client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: &id})
	}
	return failed("enabling or disabling key", k.Name, err)
}

func (k *keyPresent) rotate(ctx context.Context, client *kms.Client, id string) (err error) {
	if k.Rotation {
		_, err = client.EnableKeyRotation(ctx, &kms.EnableKeyRotationInput{KeyId: &id})
	} else {
		_, err = client.DisableKeyRotation(ctx, &kms.DisableKeyRotationInput{KeyId: &id})
	}
	return failed("setting the rotation of key", k.Name, err)
}
