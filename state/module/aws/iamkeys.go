package aws

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// accessKeys lists the access keys of a user; none where there is no such user.
func accessKeys(ctx context.Context, client *iam.Client, user string) (ids []string, err error) {
	all, err := pages(func(next *string) ([]types.AccessKeyMetadata, *string, error) {
		page, err := client.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: &user, Marker: next})
		if code(err, "NoSuchEntity") {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, failed("listing the access keys of user", user, err)
		}
		return page.AccessKeyMetadata, page.Marker, nil
	})
	for _, k := range all {
		ids = append(ids, sdk.ToString(k.AccessKeyId))
	}
	return ids, err
}

// keysPresent is boto_iam.keys_present: access keys of a user, which are written to a file that only its owner reads.
type keysPresent struct {
	common
	host   *host.Host
	Name   string `sls:"name"`
	Number int    `sls:"number,required"`
	Save   string `sls:"save_dir,required"`
	Format string `sls:"save_format"`
}

// Check implements module.Resource.
func (k *keysPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := k.cloud.account(ctx, "iam", k.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := newPlan(), iamOf(a)
	has, err := accessKeys(ctx, client, k.Name)
	if err != nil || len(has) >= k.Number {
		return k.check(p, err)
	}
	p.differ("access_keys", len(has), k.Number)
	p.then("access keys made", func(ctx context.Context) error { return k.create(ctx, client, len(has)) })
	return k.check(p, nil)
}

// Apply implements module.Resource.
func (k *keysPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	k.host = h
	return k.common.Apply(ctx, h, d)
}

// create makes the keys that are missing. {0} and {1} of the format are the ID and the key, {2} and {3} their titles.
func (k *keysPresent) create(ctx context.Context, client *iam.Client, has int) error {
	path := filepath.Join(k.Save, filepath.Base(k.Name))
	if _, err := k.host.Files.Lstat(path); err == nil {
		return diag.WithHint(fmt.Errorf("%s exists, and is not replaced by the access keys of %s", path, k.Name),
			"move it away")
	}
	var text strings.Builder
	for n := has; n < k.Number; n++ {
		out, err := client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &k.Name})
		if err != nil {
			return failed("making an access key of user", k.Name, err)
		}
		text.WriteString(strings.NewReplacer("{0}", sdk.ToString(out.AccessKey.AccessKeyId), "{1}",
			sdk.ToString(out.AccessKey.SecretAccessKey),
			"{2}", fmt.Sprintf("key_id-%d", n), "{3}", fmt.Sprintf("key-%d", n)).Replace(k.Format))
		private := fs.FileMode(0o600)
		err = k.host.Files.Write(path, host.NewFile{Content: strings.NewReader(text.String()), Mode: &private, UID: -1,
			GID: -1})
		if err != nil {
			return failed("writing the access keys of user", k.Name, err)
		}
	}
	return nil
}

// keysAbsent is boto_iam.keys_absent.
type keysAbsent struct {
	common
	Name string `sls:"name"`
	User string `sls:"user_name,required"`
	Keys []any  `sls:"access_keys,required"`
}

// Check implements module.Resource.
func (k *keysAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := k.cloud.account(ctx, "iam", k.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := newPlan(), iamOf(a)
	has, err := accessKeys(ctx, client, k.User)
	var gone []string
	for _, id := range texts(value.NewList(k.Keys...)) {
		if slices.Contains(has, id) {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 && err == nil {
		p.remove(value.NewMap("access_keys", sorted(gone)))
		p.then("access keys deleted", func(ctx context.Context) error { return deleteKeys(ctx, client, k.User, gone) })
	}
	return k.check(p, err)
}

func deleteKeys(ctx context.Context, client *iam.Client, user string, ids []string) error {
	for _, id := range ids {
		if _, err := client.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: &user, AccessKeyId: &id}); err != nil {
			return failed("deleting an access key of user", user, err)
		}
	}
	return nil
}

// signsIn reports whether a user has a password. AWS shows no passwords, so another one is not noticed.
func signsIn(ctx context.Context, client *iam.Client, user string) (bool, error) {
	_, err := client.GetLoginProfile(ctx, &iam.GetLoginProfileInput{UserName: &user})
	if code(err, "NoSuchEntity") {
		return false, nil
	}
	return err == nil, failed("looking for the password of user", user, err)
}

// Valid implements module.Validated.
func (m *memberPresent) Valid() error {
	if !m.user && m.Password != "" {
		return diag.WithHint(errors.New("a group has no password"), "give it to boto_iam.user_present")
	}
	return nil
}

// password plans the password of a user that has none.
func (m *memberPresent) password(ctx context.Context, p *plan, client *iam.Client, there bool) error {
	if m.Password == "" {
		return nil
	}
	if there {
		if has, err := signsIn(ctx, client, m.Name); has || err != nil {
			return err
		}
	}
	p.differ("password", nil, "set")
	p.then("password set", func(ctx context.Context) error {
		_, err := client.CreateLoginProfile(ctx, &iam.CreateLoginProfileInput{UserName: &m.Name, Password: &m.Password})
		return failed("setting the password of user", m.Name, err)
	})
	return nil
}

// unlink deletes what a user signs in with, as far as the arguments allow: AWS deletes no user that has some.
func (m *memberAbsent) unlink(ctx context.Context, client *iam.Client) error {
	if m.DeleteKeys {
		ids, err := accessKeys(ctx, client, m.Name)
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
			return failed("deleting the password of user", m.Name, err)
		}
	}
	if !m.DeleteDevices {
		return nil
	}
	out, err := client.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: &m.Name})
	if err != nil {
		return failed("listing the MFA devices of user", m.Name, err)
	}
	for _, d := range out.MFADevices {
		if _, err := client.DeactivateMFADevice(ctx,
			&iam.DeactivateMFADeviceInput{UserName: &m.Name, SerialNumber: d.SerialNumber}); err != nil {
			return failed("deactivating an MFA device of user", m.Name, err)
		}
	}
	return nil
}

// serverCertificate is boto_iam.server_cert_present and server_cert_absent.
type serverCertificate struct {
	common
	absent  bool
	Name    string `sls:"name"`
	Public  string `sls:"public_key"`
	Private string `sls:"private_key"`
	Chain   string `sls:"cert_chain"`
	Path    string `sls:"path"`
}

// Valid implements module.Validated.
func (s *serverCertificate) Valid() error {
	if s.absent {
		return nil
	}
	for name, v := range map[string]string{"public_key": s.Public, "private_key": s.Private} {
		if !strings.Contains(v, "-----BEGIN ") {
			return diag.WithHint(errors.New(name+" is no PEM text"), "give the text of the file, such as of the pillar")
		}
	}
	return nil
}

// Check implements module.Resource.
func (s *serverCertificate) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func (s *serverCertificate) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "iam", s.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), iamOf(a)
	out, err := client.GetServerCertificate(ctx, &iam.GetServerCertificateInput{ServerCertificateName: &s.Name})
	there := err == nil
	if err != nil && !code(err, "NoSuchEntity") {
		return nil, failed("reading server certificate", s.Name, err)
	}
	switch {
	case there && s.absent:
		p.remove(value.NewMap("server_certificate", s.Name))
		p.then("server certificate deleted", func(ctx context.Context) error {
			_, err := client.DeleteServerCertificate(ctx, &iam.DeleteServerCertificateInput{ServerCertificateName: &s.Name})
			return failed("deleting server certificate", s.Name, err)
		})
	case there && strings.TrimSpace(sdk.ToString(out.ServerCertificate.CertificateBody)) != strings.TrimSpace(s.Public):
		p.warnings = append(p.warnings, "public_key differs and cannot be changed: give the new certificate another name")
	case !there && !s.absent:
		p.create(value.NewMap("server_certificate", s.Name))
		p.then("server certificate uploaded", func(ctx context.Context) error {
			_, err := client.UploadServerCertificate(ctx, &iam.UploadServerCertificateInput{ServerCertificateName: &s.Name,
				CertificateBody: &s.Public, PrivateKey: &s.Private, CertificateChain: optional(s.Chain), Path: optional(s.Path)})
			return failed("uploading server certificate", s.Name, err)
		})
	}
	return p, nil
}

// passwordPolicy is boto_iam.account_policy: what passwords of the account have to be.
type passwordPolicy struct {
	common
	Name    string `sls:"name"`
	Change  *bool  `sls:"allow_users_to_change_password"`
	Hard    *bool  `sls:"hard_expiry"`
	Age     *int   `sls:"max_password_age"`
	Length  *int   `sls:"minimum_password_length"`
	Reuse   *int   `sls:"password_reuse_prevention"`
	Lower   *bool  `sls:"require_lowercase_characters"`
	Numbers *bool  `sls:"require_numbers"`
	Symbols *bool  `sls:"require_symbols"`
	Upper   *bool  `sls:"require_uppercase_characters"`
}

// Check implements module.Resource.
func (s *passwordPolicy) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := s.cloud.account(ctx, "iam", s.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, client, has := newPlan(), iamOf(a), &types.PasswordPolicy{}
	out, err := client.GetAccountPasswordPolicy(ctx, &iam.GetAccountPasswordPolicyInput{})
	switch {
	case err == nil:
		has = out.PasswordPolicy
	case !code(err, "NoSuchEntity"):
		return module.Diff{}, failed("reading the password policy of", "the account", err)
	}
	if in := s.drift(p, has); p.new.Len() > 0 {
		p.then("password policy set", func(ctx context.Context) error {
			_, err := client.UpdateAccountPasswordPolicy(ctx, in)
			return failed("setting the password policy of", "the account", err)
		})
	}
	return s.check(p, nil)
}

// drift notes what differs, and gives the whole policy: AWS takes what a request leaves out as its default.
func (s *passwordPolicy) drift(p *plan, has *types.PasswordPolicy) *iam.UpdateAccountPasswordPolicyInput {
	in := &iam.UpdateAccountPasswordPolicyInput{AllowUsersToChangePassword: has.AllowUsersToChangePassword,
		HardExpiry:     has.HardExpiry,
		MaxPasswordAge: has.MaxPasswordAge, MinimumPasswordLength: has.MinimumPasswordLength,
		PasswordReusePrevention:    has.PasswordReusePrevention,
		RequireLowercaseCharacters: has.RequireLowercaseCharacters, RequireNumbers: has.RequireNumbers,
		RequireSymbols: has.RequireSymbols, RequireUppercaseCharacters: has.RequireUppercaseCharacters}
	for _, f := range []struct {
		name string
		want *bool
		to   *bool
	}{{"allow_users_to_change_password", s.Change, &in.AllowUsersToChangePassword},
		{"require_lowercase_characters", s.Lower, &in.RequireLowercaseCharacters},
		{"require_numbers", s.Numbers, &in.RequireNumbers}, {"require_symbols", s.Symbols, &in.RequireSymbols},
		{"require_uppercase_characters", s.Upper, &in.RequireUppercaseCharacters}} {
		if f.want != nil && p.compare(f.name, *f.to, *f.want) {
			*f.to = *f.want
		}
	}
	if s.Hard != nil && p.compare("hard_expiry", sdk.ToBool(has.HardExpiry), *s.Hard) {
		in.HardExpiry = s.Hard
	}
	for _, f := range []struct {
		name string
		want *int
		to   **int32
	}{{"max_password_age", s.Age, &in.MaxPasswordAge}, {"minimum_password_length", s.Length, &in.MinimumPasswordLength},
		{"password_reuse_prevention", s.Reuse, &in.PasswordReusePrevention}} {
		if f.want != nil && p.compare(f.name, int(sdk.ToInt32(*f.to)), *f.want) {
			*f.to = int32s(f.want)
		}
	}
	return in
}
