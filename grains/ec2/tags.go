package ec2

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/corpus-agent/corpus-agent/grains/ec2/account"
	"github.com/corpus-agent/corpus-agent/grains/ec2/query"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tags is EC2's response to DescribeTags.
type tags struct {
	Items []struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	} `xml:"tagSet>item"`
}

// tagFromAPI requests the tag from EC2.
func (h *Host) tagFromAPI(ctx context.Context, doc *imds.InstanceIdentityDocument) (string, error) {
	ctx, stop := context.WithTimeout(ctx, h.options.APITimeout)
	defer stop()
	loaded, err := account.Load(ctx, account.Options{Region: doc.Region, Metadata: h.metadata})
	if err != nil {
		return "", fmt.Errorf("AWS configuration: %w", err)
	}
	api := query.Client{Account: loaded, Service: "ec2", Version: "2016-11-15",
		Variables: []string{"AWS_ENDPOINT_URL_EC2"}, Endpoint: h.options.API, Pause: pause}
	data, err := api.Call(ctx, "DescribeTags", url.Values{
		"Filter.1.Name": {"resource-id"}, "Filter.1.Value.1": {doc.InstanceID},
		"Filter.2.Name": {"key"}, "Filter.2.Value.1": {groupTag},
	})
	var answer tags
	if err == nil {
		err = xml.Unmarshal(data, &answer)
	}
	if err != nil {
		return "", diag.Identity.Hint(fmt.Errorf("the auto scaling group of %s is not in its metadata, and "+
			"ec2:DescribeTags fails: %w", doc.InstanceID, cause(err)),
			"allow instance tags in metadata, or let the instance's role call ec2:DescribeTags")
	}
	for _, tag := range answer.Items {
		if tag.Key == groupTag && tag.Value != "" {
			return tag.Value, nil
		}
	}
	return "", fmt.Errorf("instance %s is in no auto scaling group", doc.InstanceID)
}

// pause is the wait after a failed first attempt.
const pause = 500 * time.Millisecond

// cause returns the API's error message, or else the innermost error.
func cause(err error) error {
	var said *query.Fault
	if errors.As(err, &said) {
		return said
	}
	return innermost(err)
}
