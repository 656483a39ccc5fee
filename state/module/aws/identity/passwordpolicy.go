package identity

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// passwordPolicy implements boto_iam.account_policy: the requirements for passwords of the account.
type passwordPolicy struct {
	cloud.Common
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
	a, err := s.Cloud.Account(ctx, "iam", s.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, client, has := cloud.NewPlan(), iamOf(a), &types.PasswordPolicy{}
	out, err := client.GetAccountPasswordPolicy(ctx, &iam.GetAccountPasswordPolicyInput{})
	switch {
	case err == nil:
		has = out.PasswordPolicy
	case !cloud.HasCode(err, "NoSuchEntity"):
		return module.Diff{}, cloud.Failed("reading the password policy of", "the account", err)
	}
	if in := s.drift(p, has); p.New.Len() > 0 {
		p.Then("password policy set", func(ctx context.Context) error {
			_, err := client.UpdateAccountPasswordPolicy(ctx, in)
			return cloud.Failed("setting the password policy of", "the account", err)
		})
	}
	return s.Planned(p, nil)
}

// drift notes the fields that differ, and returns a request with the whole policy, as AWS resets the fields that a
// request leaves out.
func (s *passwordPolicy) drift(p *cloud.Plan, has *types.PasswordPolicy) *iam.UpdateAccountPasswordPolicyInput {
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
		if f.want != nil && p.Compare(f.name, *f.to, *f.want) {
			*f.to = *f.want
		}
	}
	if s.Hard != nil && p.Compare("hard_expiry", sdk.ToBool(has.HardExpiry), *s.Hard) {
		in.HardExpiry = s.Hard
	}
	for _, f := range []struct {
		name string
		want *int
		to   **int32
	}{{"max_password_age", s.Age, &in.MaxPasswordAge}, {"minimum_password_length", s.Length, &in.MinimumPasswordLength},
		{"password_reuse_prevention", s.Reuse, &in.PasswordReusePrevention}} {
		if f.want != nil && p.Compare(f.name, int(sdk.ToInt32(*f.to)), *f.want) {
			*f.to = cloud.Int32s(f.want)
		}
	}
	return in
}
