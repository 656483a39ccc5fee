package storage

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (b *bucketPresent) lifecycle() (*bucketPart, error) {
	if b.Lifecycle == nil {
		return nil, nil
	}
	in := &types.BucketLifecycleConfiguration{}
	if err := cloud.IntoSDK("LifecycleConfiguration", value.NewList(b.Lifecycle...), &in.Rules); err != nil {
		return nil, err
	}
	return &bucketPart{field: "LifecycleConfiguration", want: value.NewList(b.Lifecycle...),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return cloud.FromSDK(out.Rules)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{Bucket: &b.Bucket,
				LifecycleConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) versioning() (*bucketPart, error) {
	if b.Versioning == nil {
		return nil, nil
	}
	in := &types.VersioningConfiguration{}
	if err := cloud.IntoSDK("Versioning", b.Versioning, in); err != nil {
		return nil, err
	}
	if in.Status == "" {
		return nil, diag.Amazon.Hint(errors.New("the bucket's Versioning lacks its Status"), "write Enabled or Suspended")
	}
	return &bucketPart{field: "Versioning", want: value.NewMap("Status", string(in.Status)),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.NewMap("Status", string(out.Status)), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &b.Bucket, VersioningConfiguration: in})
			return err
		}}, nil
}

func (b *bucketPresent) replication() (*bucketPart, error) {
	if b.Replication == nil {
		return nil, nil
	}
	in := &types.ReplicationConfiguration{}
	if err := cloud.IntoSDK("Replication", b.Replication, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "Replication", want: b.Replication,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketReplication(ctx, &s3.GetBucketReplicationInput{Bucket: &b.Bucket})
			if err != nil || out.ReplicationConfiguration == nil {
				return nil, err
			}
			return b.roleName(out.ReplicationConfiguration)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			role, err := b.roleARN(ctx, sdk.ToString(in.Role))
			if err != nil {
				return err
			}
			in.Role = &role
			_, err = c.PutBucketReplication(ctx, &s3.PutBucketReplicationInput{Bucket: &b.Bucket, ReplicationConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketReplication(ctx, &s3.DeleteBucketReplicationInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

// roleName returns a replication as an argument, with its role in the form that is declared: a name or an ARN.
func (b *bucketPresent) roleName(has *types.ReplicationConfiguration) (any, error) {
	if arn := sdk.ToString(has.Role); !strings.HasPrefix(cloud.Text(b.Replication, "Role"), "arn:") {
		has.Role = sdk.String(arn[strings.LastIndexByte(arn, '/')+1:])
	}
	return cloud.FromSDK(has)
}

func (b *bucketPresent) roleARN(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	a, err := b.Cloud.Account(ctx, "iam", b.Arguments)
	if err != nil {
		return "", err
	}
	number, err := cloud.AccountNumber(ctx, a)
	return "arn:aws:iam::" + number + ":role/" + name, err
}
