package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// accessKeys returns the IDs of the access keys of a user, and whether the user exists.
func accessKeys(ctx context.Context, client *iam.Client, user string) (ids []string, there bool, err error) {
	there = true
	all, err := cloud.Pages(func(next *string) ([]types.AccessKeyMetadata, *string, error) {
		page, err := client.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: &user, Marker: next})
		if cloud.HasCode(err, "NoSuchEntity") {
			there = false
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, cloud.Failed("listing the access keys of user", user, err)
		}
		return page.AccessKeyMetadata, page.Marker, nil
	})
	for _, k := range all {
		ids = append(ids, sdk.ToString(k.AccessKeyId))
	}
	return ids, there, err
}

// keysPresent implements boto_iam.keys_present: access keys of a user. New keys are written to a file that only its
// owner can read.
type keysPresent struct {
	cloud.Common
	host   *host.Host
	Name   string `sls:"name"`
	Number int    `sls:"number,required"`
	Save   string `sls:"save_dir,required"`
	Format string `sls:"save_format"`
}

// Check implements module.Resource.
func (k *keysPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	a, err := k.Cloud.Account(ctx, "iam", k.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := cloud.NewPlan(), iamOf(a)
	has, there, err := accessKeys(ctx, client, k.Name)
	if err == nil && !there && !a.Expects("user", k.Name) {
		err = cloud.Missing("user", k.Name, "boto_iam.user_present")
	}
	if err != nil {
		return k.Planned(p, err)
	}
	if len(has) >= k.Number {
		written := has
		if !strings.Contains(k.Format, "{0}") {
			written = nil
		}
		p.Warnings = cloud.LostSecret(h, cloud.SecretFile(k.Save, k.Name), "the access keys of user "+k.Name,
			"delete the lost keys with boto_iam.keys_absent, and the next run makes new ones", written...)
		return k.Planned(p, nil)
	}
	if err := k.Cloud.CheckSecretFile(h, cloud.SecretFile(k.Save, k.Name), "the access keys of user "+k.Name); err != nil {
		return module.Diff{}, err
	}
	p.Differ("access_keys", len(has), k.Number)
	p.Then("access keys made", func(ctx context.Context) error { return k.create(ctx, client, len(has)) })
	return k.Planned(p, nil)
}

// Apply implements module.Resource.
func (k *keysPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	k.host = h
	return k.Common.Apply(ctx, h, d)
}

// create makes the missing keys. In the format, {0} is the ID, {1} is the secret key, and {2} and {3} are their titles.
func (k *keysPresent) create(ctx context.Context, client *iam.Client, has int) error {
	path := cloud.SecretFile(k.Save, k.Name)
	if _, err := k.host.Files.Lstat(path); err == nil {
		return diag.Path.Hint(fmt.Errorf("%s exists, and is not replaced by the access keys of %s", path, k.Name),
			"move it away")
	}
	ctx, cancel := cloud.Uninterrupted(ctx)
	defer cancel()
	var text strings.Builder
	for n := has; n < k.Number; n++ {
		out, err := client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &k.Name})
		if err != nil {
			return cloud.Failed("making an access key of user", k.Name, err)
		}
		text.WriteString(strings.NewReplacer("{0}", sdk.ToString(out.AccessKey.AccessKeyId), "{1}",
			sdk.ToString(out.AccessKey.SecretAccessKey),
			"{2}", fmt.Sprintf("key_id-%d", n), "{3}", fmt.Sprintf("key-%d", n)).Replace(k.Format))
		private := fs.FileMode(0o600)
		err = k.host.Files.Write(path, host.NewFile{Content: strings.NewReader(text.String()), Mode: &private, UID: -1,
			GID: -1})
		if err != nil { // the secret half is nowhere else
			_, gone := client.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: &k.Name,
				AccessKeyId: out.AccessKey.AccessKeyId})
			return errors.Join(cloud.Failed("writing the access keys of user", k.Name, err),
				cloud.Failed("deleting the access key again, which is lost, of user", k.Name, gone))
		}
	}
	return nil
}

// keysAbsent implements boto_iam.keys_absent.
type keysAbsent struct {
	cloud.Common
	Name string `sls:"name"`
	User string `sls:"user_name,required"`
	Keys []any  `sls:"access_keys,required"`
}

// Check implements module.Resource.
func (k *keysAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := k.Cloud.Account(ctx, "iam", k.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := cloud.NewPlan(), iamOf(a)
	has, _, err := accessKeys(ctx, client, k.User)
	var gone []string
	for _, id := range cloud.Texts(value.NewList(k.Keys...)) {
		if slices.Contains(has, id) {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 && err == nil {
		p.Remove(strings.Join(gone, ","), value.NewMap("access_keys", cloud.Sorted(gone), "user", k.User))
		p.Then("access keys deleted", func(ctx context.Context) error { return deleteKeys(ctx, client, k.User, gone) })
	}
	return k.Planned(p, err)
}

func deleteKeys(ctx context.Context, client *iam.Client, user string, ids []string) error {
	for _, id := range ids {
		if _, err := client.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: &user, AccessKeyId: &id}); err != nil {
			return cloud.Failed("deleting an access key of user", user, err)
		}
	}
	return nil
}
