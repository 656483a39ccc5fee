package aws

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/identity"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func roleConfig(ctx context.Context, a *cloud.Account, name string) (any, error) {
	all, err := identity.Roles(ctx, a)
	has, there := all[name]
	if !there || err != nil {
		return false, err
	}
	return value.NewMap("role_name", name, "arn", sdk.ToString(has.Arn), "role_id", sdk.ToString(has.RoleId), "path",
			sdk.ToString(has.Path), "assume_role_policy_document",
			identity.Document(sdk.ToString(has.AssumeRolePolicyDocument))),
		nil
}

func profileExists(ctx context.Context, a *cloud.Account, name string) (any, error) {
	all, err := identity.Roles(ctx, a)
	for _, r := range all {
		for _, p := range r.InstanceProfileList {
			if sdk.ToString(p.InstanceProfileName) == name {
				return true, err
			}
		}
	}
	return false, err
}

func memberConfig(kind string) func(ctx context.Context, a *cloud.Account, name string) (any, error) {
	return func(ctx context.Context, a *cloud.Account, name string) (any, error) {
		all, err := identity.Members(ctx, a)
		has, there := all[kind+" "+name]
		if !there || err != nil {
			return false, err
		}
		return value.NewMap(kind+"_name", name, "groups", value.Strings(has.Groups...)), nil
	}
}

func keyExists(ctx context.Context, a *cloud.Account, name string) (any, error) {
	_, err := identity.KMSOf(a).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &name})
	if cloud.HasCode(err, "NotFoundException") {
		return value.NewMap("result", false), nil
	}
	return value.NewMap("result", err == nil), cloud.Failed("reading key", name, err)
}
