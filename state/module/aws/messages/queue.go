// Package messages has the states boto_sqs and boto_sns: queues, topics and their subscriptions.
package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// SQSTable returns the state functions of boto_sqs.
func SQSTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &sqsPresent{Common: cloud.Common{Cloud: c}} },
		"absent":  func() module.Resource { return &sqsAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

// sqsPresent implements boto_sqs.present: a queue and its attributes.
type sqsPresent struct {
	cloud.Common
	Name       string     `sls:"name"`
	Attributes *value.Map `sls:"attributes"`
}

// RunsBeside implements module.Concurrent.
func (*sqsPresent) RunsBeside() {}

// Check implements module.Resource.
func (s *sqsPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *sqsPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "sqs", s.Arguments)
	if err != nil {
		return nil, err
	}
	client, p := SQSOf(a), cloud.NewPlan()
	p.Warnings = s.unknown()
	want := map[string]string{}
	for name, v := range s.Attributes.All() {
		if want[value.Str(name)], err = cloud.AttributeText(v); err != nil {
			return nil, err
		}
	}
	url, err := QueueURL(ctx, client, s.Name)
	if err != nil {
		return nil, err
	}
	if url == "" {
		a.Expect("queue", s.Name)
		fields := value.NewMap("queue", s.Name)
		if s.Attributes.Len() > 0 {
			fields.Set("attributes", s.Attributes)
		}
		p.Create(fields)
		p.Then("queue made", func(ctx context.Context) error {
			return cloud.WaitFor(ctx, "queue "+s.Name+", which was deleted, can be made", cloud.Soon,
				func(ctx context.Context) (bool, error) {
					_, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &s.Name, Attributes: want})
					// AWS refuses the name of a queue that was deleted less than a minute ago.
					if cloud.HasCode(err, "QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently") {
						return false, nil
					}
					return err == nil, cloud.Failed("making queue", s.Name, err)
				})
		})
		return p, nil
	}
	if len(want) == 0 {
		return p, nil
	}
	has, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, cloud.Failed("reading queue", s.Name, err)
	}
	changed := map[string]string{}
	for _, name := range s.Attributes.Names() {
		if old := has.Attributes[name]; !cloud.SameText(old, want[name]) {
			p.Differ(name, old, want[name])
			changed[name] = want[name]
		}
	}
	if len(changed) > 0 {
		p.Then("attributes set", func(ctx context.Context) error {
			_, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: changed})
			return cloud.Failed("setting the attributes of queue", s.Name, err)
		})
	}
	return p, nil
}

// unknown warns of attributes that AWS does not have, or that cannot be set.
func (s *sqsPresent) unknown() (warnings []string) {
	var settable []string
	for _, name := range types.QueueAttributeNameAll.Values() {
		switch {
		case name == types.QueueAttributeNameAll, name == types.QueueAttributeNameQueueArn,
			strings.HasPrefix(string(name), "ApproximateNumber"), strings.HasSuffix(string(name), "Timestamp"):
		default:
			settable = append(settable, string(name))
		}
	}
	for _, name := range s.Attributes.Names() {
		if slices.Contains(settable, name) {
			continue
		}
		warning := "attributes has " + name + ", which is none that a queue takes"
		if near := diag.DidYouMean(name, settable); near != "" {
			warning += ": " + near
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

// SQSOf returns a client of SQS.
func SQSOf(a *cloud.Account) *sqs.Client { return sqs.NewFromConfig(a.Client("sqs")) }

// QueueURL returns the URL of a queue, or "" if there is none.
func QueueURL(ctx context.Context, client *sqs.Client, name string) (string, error) {
	out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if cloud.HasCode(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue") {
		return "", nil
	}
	if err != nil {
		return "", cloud.Failed("looking for queue", name, err)
	}
	if out.QueueUrl == nil || *out.QueueUrl == "" {
		return "", fmt.Errorf("looking for queue %s: the answer has no URL", name)
	}
	return *out.QueueUrl, nil
}

// sqsAbsent implements boto_sqs.absent.
type sqsAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (s *sqsAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *sqsAbsent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "sqs", s.Arguments)
	if err != nil {
		return nil, err
	}
	client, p := SQSOf(a), cloud.NewPlan()
	url, err := QueueURL(ctx, client, s.Name)
	if url == "" || err != nil {
		return p, err
	}
	has, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, cloud.Failed("reading queue", s.Name, err)
	}
	p.Remove(strings.TrimSpace(url+" "+has.Attributes["CreatedTimestamp"]),
		value.NewMap("queue", s.Name, "holds_messages", holdsMessages(has.Attributes)))
	p.Then("queue deleted", func(ctx context.Context) error {
		_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
		return cloud.Failed("deleting queue", s.Name, err)
	})
	return p, nil
}

// holdsMessages reports whether a queue with these attributes has messages.
func holdsMessages(attributes map[string]string) bool {
	holds := false
	for name, n := range attributes {
		holds = holds || strings.HasPrefix(name, "ApproximateNumberOfMessages") && n != "0"
	}
	return holds
}
