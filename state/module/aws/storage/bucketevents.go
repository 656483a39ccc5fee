package storage

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

func (b *bucketPresent) logging() (*bucketPart, error) {
	if b.Logging == nil {
		return nil, nil
	}
	in := &types.BucketLoggingStatus{}
	if b.Logging.Len() > 0 {
		in.LoggingEnabled = &types.LoggingEnabled{}
		if err := cloud.IntoSDK("Logging", b.Logging, in.LoggingEnabled); err != nil {
			return nil, err
		}
	}
	return &bucketPart{field: "Logging", want: b.Logging,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketLogging(ctx, &s3.GetBucketLoggingInput{Bucket: &b.Bucket})
			if err != nil || out.LoggingEnabled == nil {
				return nil, err
			}
			return cloud.FromSDK(out.LoggingEnabled)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketLogging(ctx, &s3.PutBucketLoggingInput{Bucket: &b.Bucket, BucketLoggingStatus: in})
			return err
		}}, nil
}

func (b *bucketPresent) notifications() (*bucketPart, error) {
	if b.Notifications == nil {
		return nil, nil
	}
	in := &types.NotificationConfiguration{}
	if err := cloud.IntoSDK("NotificationConfiguration", b.Notifications, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "NotificationConfiguration", want: b.Notifications,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketNotificationConfiguration(ctx, &s3.GetBucketNotificationConfigurationInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return cloud.FromSDK(types.NotificationConfiguration{LambdaFunctionConfigurations: out.LambdaFunctionConfigurations,
				QueueConfigurations: out.QueueConfigurations, TopicConfigurations: out.TopicConfigurations})
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{Bucket: &b.Bucket,
				NotificationConfiguration: in})
			return err
		}}, nil
}
