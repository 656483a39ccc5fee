package cloud

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestClientsOfAServiceShareARetryer checks that a throttled request slows down the requests of its service only, and
// that clients share connections.
func TestClientsOfAServiceShareARetryer(t *testing.T) {
	c, reached := &Cloud{}, Arguments{Region: "us-east-1", KeyID: "id", Key: "key"}
	a, err := c.Account(context.Background(), "sqs", reached)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Account(context.Background(), "sns", reached)
	if err != nil {
		t.Fatal(err)
	}
	one, two := sqs.NewFromConfig(a.Client("sqs")).Options(), sqs.NewFromConfig(b.Client("sqs")).Options()
	other := sns.NewFromConfig(a.Client("sns")).Options()
	if one.Retryer != two.Retryer {
		t.Error("two clients of SQS do not share a retryer")
	}
	if one.Retryer == other.Retryer {
		t.Error("clients of SQS and SNS share a retryer")
	}
	if one.HTTPClient != two.HTTPClient || one.HTTPClient != other.HTTPClient {
		t.Error("clients do not share connections")
	}
	if n := one.Retryer.MaxAttempts(); n != 10 {
		t.Errorf("a request is sent at most %d times, want 10", n)
	}
}
