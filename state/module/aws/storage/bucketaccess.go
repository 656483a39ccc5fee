package storage

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const allUsers = "http://acs.amazonaws.com/groups/global/AllUsers"

// cannedRights are the rights that each canned ACL grants in addition to those of the owner.
var cannedRights = map[string][][2]string{
	"private": nil, "public-read": {{allUsers, "READ"}}, "public-read-write": {{allUsers, "READ"}, {allUsers, "WRITE"}},
	"authenticated-read": {{"http://acs.amazonaws.com/groups/global/AuthenticatedUsers", "READ"}},
	"log-delivery-write": {{"http://acs.amazonaws.com/groups/s3/LogDelivery", "READ_ACP"},
		{"http://acs.amazonaws.com/groups/s3/LogDelivery", "WRITE"}},
	"aws-exec-read": {{"6aa5a366c34c1cbe25dc49211496e913e0351eb0e8c37aa3477e40942ec6b97c", "READ"}},
}

func (b *bucketPresent) acl() (*bucketPart, error) {
	if b.ACL == nil {
		return nil, nil
	}
	want := value.NewList()
	in := &s3.PutBucketAclInput{Bucket: &b.Bucket}
	policy := b.ACL.Value("AccessControlPolicy")
	if policy != nil {
		in.AccessControlPolicy = &types.AccessControlPolicy{}
		if err := cloud.IntoSDK("ACL", policy, in.AccessControlPolicy); err != nil {
			return nil, err
		}
		want = rights(in.AccessControlPolicy.Grants, in.AccessControlPolicy.Owner)
	}
	if name := cloud.Text(b.ACL, "ACL"); name != "" {
		known, ok := cannedRights[name]
		if !ok {
			return nil,
				diag.Amazon.Hint(fmt.Errorf("there is no ACL %s", name), "write private, public-read or another one that S3 knows")
		}
		in.ACL = types.BucketCannedACL(name)
		for _, r := range known {
			want.Append(r[0] + " " + r[1])
		}
	}
	for _, f := range []struct {
		field, permission string
		to                **string
	}{{"GrantFullControl", "FULL_CONTROL", &in.GrantFullControl}, {"GrantRead", "READ", &in.GrantRead},
		{"GrantReadACP", "READ_ACP", &in.GrantReadACP}, {"GrantWrite", "WRITE", &in.GrantWrite},
		{"GrantWriteACP", "WRITE_ACP", &in.GrantWriteACP}} {
		given := cloud.Text(b.ACL, f.field)
		if given == "" {
			continue
		}
		*f.to = &given
		for one := range strings.SplitSeq(given, ",") {
			_, who, _ := strings.Cut(one, "=")
			want.Append(strings.Trim(who, `" `) + " " + f.permission)
		}
	}
	return &bucketPart{field: "ACL", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketAcl(ctx, &s3.GetBucketAclInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return rights(out.Grants, out.Owner), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketAcl(ctx, in)
			if cloud.HasCode(err, "AccessControlListNotSupported") {
				return diag.Resource.Hint(err, "the bucket takes no ACLs: set its object ownership to ObjectWriter, or use Policy")
			}
			return explainDenied(err)
		}}, nil
}

// rights returns grants as texts, without those of the owner.
func rights(grants []types.Grant, owner *types.Owner) *value.List {
	all := value.NewList()
	for _, g := range grants {
		if g.Grantee == nil || owner != nil && g.Grantee.ID != nil && sdk.ToString(g.Grantee.ID) == sdk.ToString(owner.ID) {
			continue
		}
		all.Append(sdk.ToString(g.Grantee.ID) + sdk.ToString(g.Grantee.URI) + sdk.ToString(g.Grantee.EmailAddress) + " " +
			string(g.Permission))
	}
	return all
}

func (b *bucketPresent) policy() (*bucketPart, error) {
	if b.Policy == nil {
		return nil, nil
	}
	want := b.Policy
	if given, ok := b.Policy.(string); ok && given != "" {
		v, err := value.FromJSON([]byte(given))
		if err != nil {
			return nil, diag.Amazon.Hint(fmt.Errorf("the bucket's Policy: %w", err), "write it as a mapping, or as JSON")
		}
		want = v
	}
	doc, err := cloud.AttributeText(want)
	if err != nil {
		return nil, err
	}
	return &bucketPart{field: "Policy", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.FromJSON([]byte(sdk.ToString(out.Policy)))
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &b.Bucket, Policy: &doc})
			return explainDenied(err)
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

// explainDenied adds a hint to an error if AWS refused an ACL or a policy, which may open the bucket to all.
func explainDenied(err error) error {
	if !cloud.HasCode(err, "AccessDenied") {
		return err
	}
	return diag.Credentials.Hint(err, "allow the account this action; if this opens the bucket to all, AWS blocks that "+
		"of new buckets: delete its public access block first")
}
