package storage

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (b *bucketPresent) cors() (*bucketPart, error) {
	if b.CORS == nil {
		return nil, nil
	}
	in := &types.CORSConfiguration{}
	if err := cloud.IntoSDK("CORSRules", value.NewList(b.CORS...), &in.CORSRules); err != nil {
		return nil, err
	}
	return &bucketPart{field: "CORSRules", want: value.NewList(b.CORS...),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return cloud.FromSDK(out.CORSRules)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketCors(ctx, &s3.PutBucketCorsInput{Bucket: &b.Bucket, CORSConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) website() (*bucketPart, error) {
	if b.Website == nil {
		return nil, nil
	}
	in := &types.WebsiteConfiguration{}
	if err := cloud.IntoSDK("Website", b.Website, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "Website", want: b.Website,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketWebsite(ctx, &s3.GetBucketWebsiteInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return cloud.FromSDK(types.WebsiteConfiguration{ErrorDocument: out.ErrorDocument, IndexDocument: out.IndexDocument,
				RedirectAllRequestsTo: out.RedirectAllRequestsTo, RoutingRules: out.RoutingRules})
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketWebsite(ctx, &s3.PutBucketWebsiteInput{Bucket: &b.Bucket, WebsiteConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketWebsite(ctx, &s3.DeleteBucketWebsiteInput{Bucket: &b.Bucket})
			return err
		}}, nil
}
