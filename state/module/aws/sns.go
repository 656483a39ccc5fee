package aws

import (
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func snsTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &topicPresent{common: common{cloud: c}} },
		"absent":  func() module.Resource { return &topicAbsent{common: common{cloud: c}} },
	}
}

// topicPresent is boto_sns.present: a topic and its subscriptions.
type topicPresent struct {
	common
	Name          string `sls:"name"`
	Subscriptions []any  `sls:"subscriptions"`
}

// RunsBeside implements module.Concurrent.
func (*topicPresent) RunsBeside() {}

func snsOf(a *account) *sns.Client { return sns.NewFromConfig(a.client("sns")) }

// topicARN finds a topic by its name; "" for none.
func topicARN(ctx context.Context, a *account, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	all, err := remember(a, "topics", func() (map[string]string, error) {
		list, err := pages(func(next *string) ([]types.Topic, *string, error) {
			page, err := snsOf(a).ListTopics(ctx, &sns.ListTopicsInput{NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the topics of", a.config.Region, err)
			}
			return page.Topics, page.NextToken, nil
		})
		all := map[string]string{}
		for _, t := range list {
			arn := sdk.ToString(t.TopicArn)
			all[arn[strings.LastIndexByte(arn, ':')+1:]] = arn
		}
		return all, err
	})
	return all[name], err
}

// Check implements module.Resource.
func (t *topicPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return t.check(t.look(ctx))
}

func (t *topicPresent) look(ctx context.Context) (*plan, error) {
	a, err := t.cloud.account(ctx, "sns", t.Account)
	if err != nil {
		return nil, err
	}
	client, p := snsOf(a), newPlan()
	arn, err := topicARN(ctx, a, t.Name)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	if arn == "" {
		p.create(value.NewMap("topic", t.Name))
		p.then("topic made", func(ctx context.Context) error {
			out, err := client.CreateTopic(ctx, &sns.CreateTopicInput{Name: &t.Name})
			a.forget("topics")
			if err != nil {
				return failed("making topic", t.Name, err)
			}
			arn = sdk.ToString(out.TopicArn) // lists show it later
			return nil
		})
	} else if len(t.Subscriptions) > 0 {
		if has, err = subscriptions(ctx, client, arn); err != nil {
			return nil, err
		}
	}
	var old, new []string
	for s := range has {
		old = append(old, s)
	}
	for _, one := range t.Subscriptions {
		protocol, endpoint := text(mapOf(one), "protocol"), text(mapOf(one), "endpoint")
		new = append(new, protocol+" "+endpoint)
		if has[protocol+" "+endpoint] {
			continue
		}
		p.differ("subscriptions", sorted(old), sorted(append(new, old...)))
		p.then("subscribed", func(ctx context.Context) error {
			_, err := client.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &arn, Protocol: &protocol, Endpoint: &endpoint})
			return failed("subscribing to topic", t.Name, err)
		})
	}
	return p, nil
}

// subscriptions are those of a topic, as their protocols and endpoints.
func subscriptions(ctx context.Context, client *sns.Client, arn string) (map[string]bool, error) {
	list, err := pages(func(next *string) ([]types.Subscription, *string, error) {
		page, err := client.ListSubscriptionsByTopic(ctx, &sns.ListSubscriptionsByTopicInput{TopicArn: &arn, NextToken: next})
		if err != nil {
			return nil, nil, failed("listing the subscriptions of", arn, err)
		}
		return page.Subscriptions, page.NextToken, nil
	})
	all := map[string]bool{}
	for _, s := range list {
		all[key(s)] = true
	}
	return all, err
}

func key(s types.Subscription) string {
	return sdk.ToString(s.Protocol) + " " + sdk.ToString(s.Endpoint)
}

// topicAbsent is boto_sns.absent.
type topicAbsent struct {
	common
	Name        string `sls:"name"`
	Unsubscribe bool   `sls:"unsubscribe"`
}

// Check implements module.Resource.
func (t *topicAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := t.cloud.account(ctx, "sns", t.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	arn, err := topicARN(ctx, a, t.Name)
	if arn != "" && err == nil {
		p.remove(value.NewMap("topic", t.Name))
		p.then("topic deleted", func(ctx context.Context) error {
			defer a.forget("topics")
			_, err := snsOf(a).DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: &arn}) // and its subscriptions
			return failed("deleting topic", t.Name, err)
		})
	}
	return t.check(p, err)
}
