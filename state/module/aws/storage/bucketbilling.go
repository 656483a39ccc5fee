package storage

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (b *bucketPresent) payment() (*bucketPart, error) {
	if b.Payment == nil {
		return nil, nil
	}
	in := &types.RequestPaymentConfiguration{}
	if err := cloud.IntoSDK("RequestPayment", b.Payment, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "RequestPayment", want: b.Payment,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketRequestPayment(ctx, &s3.GetBucketRequestPaymentInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.NewMap("Payer", string(out.Payer)), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketRequestPayment(ctx,
				&s3.PutBucketRequestPaymentInput{Bucket: &b.Bucket, RequestPaymentConfiguration: in})
			return err
		}}, nil
}

func (b *bucketPresent) tagging() (*bucketPart, error) {
	if b.Tagging == nil {
		return nil, nil
	}
	in, want := &types.Tagging{}, value.NewMap()
	for key, v := range b.Tagging.All() {
		in.TagSet = append(in.TagSet, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
		want.Set(value.Str(key), value.Str(v))
	}
	return &bucketPart{field: "Tagging", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			has := value.NewMap()
			for _, t := range out.TagSet {
				has.Set(sdk.ToString(t.Key), sdk.ToString(t.Value))
			}
			return has, nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &b.Bucket, Tagging: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: &b.Bucket})
			return err
		}}, nil
}
