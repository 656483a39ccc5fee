package storage

import (
	"context"
	"strings"

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
	want, err := events(in)
	if err != nil {
		return nil, err
	}
	return &bucketPart{field: "NotificationConfiguration", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketNotificationConfiguration(ctx, &s3.GetBucketNotificationConfigurationInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return events(&types.NotificationConfiguration{LambdaFunctionConfigurations: out.LambdaFunctionConfigurations,
				QueueConfigurations: out.QueueConfigurations, TopicConfigurations: out.TopicConfigurations})
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{Bucket: &b.Bucket,
				NotificationConfiguration: in})
			return err
		}}, nil
}

// events returns notifications in the form in which they are compared. AWS returns the names of the rules of filters,
// prefix and suffix, with a capital letter.
func events(c *types.NotificationConfiguration) (any, error) {
	var filters []*types.NotificationConfigurationFilter
	for _, one := range c.QueueConfigurations {
		filters = append(filters, one.Filter)
	}
	for _, one := range c.TopicConfigurations {
		filters = append(filters, one.Filter)
	}
	for _, one := range c.LambdaFunctionConfigurations {
		filters = append(filters, one.Filter)
	}
	for _, filter := range filters {
		if filter == nil || filter.Key == nil {
			continue
		}
		for i, rule := range filter.Key.FilterRules {
			filter.Key.FilterRules[i].Name = types.FilterRuleName(strings.ToLower(string(rule.Name)))
		}
	}
	return cloud.FromSDK(c)
}
