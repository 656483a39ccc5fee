package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tagFromAPI asks EC2 for the tag. The service's client is a large package, but what a program grows
// by is a quarter of a MiB, as long as the client is never converted to an interface: the linker
// then drops the operations that are not called.
func (h *Host) tagFromAPI(ctx context.Context, doc *imds.InstanceIdentityDocument) (string, error) {
	ctx, stop := context.WithTimeout(ctx, h.options.APITimeout)
	defer stop()
	account, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(doc.Region),
		config.WithLogger(logging.Nop{}),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = h.metadata }),
	)
	if err != nil {
		return "", fmt.Errorf("AWS configuration: %w", err)
	}
	client := ec2.NewFromConfig(account, func(o *ec2.Options) {
		if h.options.API != "" {
			o.BaseEndpoint = &h.options.API
		}
	})
	answer, err := client.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{
		{Name: aws.String("resource-id"), Values: []string{doc.InstanceID}},
		{Name: aws.String("key"), Values: []string{groupTag}},
	}})
	if err != nil {
		return "", diag.WithHint(fmt.Errorf("the auto scaling group of %s is not in its metadata, and ec2:DescribeTags fails: %w", doc.InstanceID, cause(err)),
			"allow instance tags in metadata, or let the instance's role call ec2:DescribeTags")
	}
	for _, tag := range answer.Tags {
		if aws.ToString(tag.Key) == groupTag && aws.ToString(tag.Value) != "" {
			return *tag.Value, nil
		}
	}
	return "", fmt.Errorf("instance %s is in no auto scaling group", doc.InstanceID)
}

// cause is what the API said, or else the innermost error.
func cause(err error) error {
	var said smithy.APIError
	if errors.As(err, &said) {
		return fmt.Errorf("%s: %s", said.ErrorCode(), said.ErrorMessage())
	}
	return innermost(err)
}
