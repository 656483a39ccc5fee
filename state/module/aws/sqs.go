package aws

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func sqsTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &sqsPresent{common: common{cloud: c}} },
		"absent":  func() module.Resource { return &sqsAbsent{common: common{cloud: c}} },
	}
}

// sqsPresent is boto_sqs.present: a queue and its attributes.
type sqsPresent struct {
	common
	Name       string     `sls:"name"`
	Attributes *value.Map `sls:"attributes"`
}

// RunsBeside implements module.Concurrent.
func (*sqsPresent) RunsBeside() {}

// Check implements module.Resource.
func (s *sqsPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func (s *sqsPresent) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "sqs", s.Account)
	if err != nil {
		return nil, err
	}
	client, p := sqsOf(a), newPlan()
	want := map[string]string{}
	for name, v := range s.Attributes.All() {
		if want[value.Str(name)], err = attributeText(v); err != nil {
			return nil, err
		}
	}
	url, err := queueURL(ctx, client, s.Name)
	if err != nil {
		return nil, err
	}
	if url == "" {
		a.expect("queue", s.Name)
		fields := value.NewMap("queue", s.Name)
		if s.Attributes.Len() > 0 {
			fields.Set("attributes", s.Attributes)
		}
		p.create(fields)
		p.then("queue made", func(ctx context.Context) error {
			return waitFor(ctx, "queue "+s.Name+", which was deleted, can be made", soon,
				func(ctx context.Context) (bool, error) {
					_, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &s.Name, Attributes: want})
					if code(err, "QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently") { // within a minute
						return false, nil
					}
					return err == nil, failed("making queue", s.Name, err)
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
		return nil, failed("reading queue", s.Name, err)
	}
	changed := map[string]string{}
	for _, name := range s.Attributes.Names() {
		if old := has.Attributes[name]; !sameText(old, want[name]) {
			p.differ(name, old, want[name])
			changed[name] = want[name]
		}
	}
	if len(changed) > 0 {
		p.then("attributes set", func(ctx context.Context) error {
			_, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: changed})
			return failed("setting the attributes of queue", s.Name, err)
		})
	}
	return p, nil
}

func sqsOf(a *account) *sqs.Client { return sqs.NewFromConfig(a.client("sqs")) }

// queueURL is the URL of a queue; "" for none.
func queueURL(ctx context.Context, client *sqs.Client, name string) (string, error) {
	out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if code(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue") {
		return "", nil
	}
	if err != nil {
		return "", failed("looking for queue", name, err)
	}
	return *out.QueueUrl, nil
}

// sqsAbsent is boto_sqs.absent.
type sqsAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (s *sqsAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func (s *sqsAbsent) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "sqs", s.Account)
	if err != nil {
		return nil, err
	}
	client, p := sqsOf(a), newPlan()
	url, err := queueURL(ctx, client, s.Name)
	if url == "" || err != nil {
		return p, err
	}
	p.remove(value.NewMap("queue", s.Name))
	p.then("queue deleted", func(ctx context.Context) error {
		_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
		return failed("deleting queue", s.Name, err)
	})
	return p, nil
}

// attributeText is the value of an attribute as AWS takes it: a policy is JSON.
func attributeText(v any) (string, error) {
	switch v := v.(type) {
	case *value.Map, *value.List:
		return value.Dumps(v, value.JSONOptions{})
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case nil:
		return "", nil
	}
	return value.Str(v), nil
}

// sameText reports whether two texts mean the same: as they are, or as JSON.
func sameText(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.HasPrefix(strings.TrimSpace(a), "{") {
		return strings.EqualFold(a, b)
	}
	x, err := value.FromJSON([]byte(a))
	y, other := value.FromJSON([]byte(b))
	return err == nil && other == nil && samePolicy(x, y)
}

// samePolicy reports whether two policies mean the same: AWS writes a list of one text as the text, and lists of
// actions and resources have no order.
func samePolicy(a, b any) bool { return value.Equal(plainPolicy(a), plainPolicy(b)) }

func plainPolicy(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := value.NewMap()
		for key, item := range v.All() {
			m.Set(value.Str(key), plainPolicy(item))
		}
		return m
	case *value.List:
		if len(v.Items) == 1 {
			return plainPolicy(v.Items[0])
		}
		all, words := value.NewList(), true
		for _, item := range v.Items {
			all.Append(plainPolicy(item))
			_, is := item.(string)
			words = words && is
		}
		if words {
			return sorted(texts(v))
		}
		return all
	case bool: // AWS keeps what a condition says as text
		if v {
			return "true"
		}
		return "false"
	case int, float64:
		return value.Str(v)
	}
	return v
}
