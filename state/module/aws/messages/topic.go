package messages

import (
	"context"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// SNSTable returns the state functions of boto_sns.
func SNSTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &topicPresent{Common: cloud.Common{Cloud: c}} },
		"absent":  func() module.Resource { return &topicAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

// topicPresent implements boto_sns.present: a topic and its subscriptions.
type topicPresent struct {
	cloud.Common
	Name          string `sls:"name"`
	Subscriptions []any  `sls:"subscriptions"`
}

// RunsBeside implements module.Concurrent.
func (*topicPresent) RunsBeside() {}

func snsOf(a *cloud.Account) *sns.Client { return sns.NewFromConfig(a.Client("sns")) }

// subscriptionFields returns the fields of a subscription.
func subscriptionFields() cloud.Fields {
	return cloud.Fields{"protocol": cloud.Word, "endpoint": cloud.Word}
}

// NameToARN returns the ARN that a topic with a name has, or would have. It returns an ARN unchanged.
func NameToARN(ctx context.Context, a *cloud.Account, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	number, err := cloud.AccountNumber(ctx, a)
	if err != nil {
		return "", err
	}
	partition := "aws"
	switch {
	case strings.HasPrefix(a.Config.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(a.Config.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return strings.Join([]string{"arn", partition, "sns", a.Config.Region, number, name}, ":"), nil
}

// TopicARN returns the ARN of the topic with a name, or "" if there is none. It returns an ARN unchanged.
func TopicARN(ctx context.Context, a *cloud.Account, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	all, err := cloud.Remember(a, "topics", func() (map[string]string, error) {
		list, err := cloud.Pages(func(next *string) ([]types.Topic, *string, error) {
			page, err := snsOf(a).ListTopics(ctx, &sns.ListTopicsInput{NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the topics of", a.Config.Region, err)
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
	return t.Planned(t.look(ctx))
}

func (t *topicPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := t.Cloud.Account(ctx, "sns", t.Arguments)
	if err != nil {
		return nil, err
	}
	client, p := snsOf(a), cloud.NewPlan()
	arn, err := TopicARN(ctx, a, t.Name)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	if arn == "" {
		p.Create(value.NewMap("topic", t.Name))
		p.Then("topic made", func(ctx context.Context) error {
			out, err := client.CreateTopic(ctx, &sns.CreateTopicInput{Name: &t.Name})
			a.Forget("topics")
			if err != nil {
				return cloud.Failed("making topic", t.Name, err)
			}
			arn = sdk.ToString(out.TopicArn) // the list of topics may not show it yet
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
		if err := subscriptionFields().Check("the subscription "+value.Repr(one), one); err != nil {
			return nil, err
		}
		protocol, endpoint := cloud.Text(cloud.MapOf(one), "protocol"), cloud.Text(cloud.MapOf(one), "endpoint")
		new = append(new, protocol+" "+endpoint)
		if has[protocol+" "+endpoint] {
			continue
		}
		p.Differ("subscriptions", cloud.Sorted(old), cloud.Sorted(append(new, old...)))
		p.Then("subscribed", func(ctx context.Context) error {
			_, err := client.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &arn, Protocol: &protocol, Endpoint: &endpoint})
			return cloud.Failed("subscribing to topic", t.Name, err)
		})
	}
	return p, nil
}

// subscriptions returns the subscriptions of a topic. The keys of the map are protocol and endpoint.
func subscriptions(ctx context.Context, client *sns.Client, arn string) (map[string]bool, error) {
	list, err := cloud.Pages(func(next *string) ([]types.Subscription, *string, error) {
		page, err := client.ListSubscriptionsByTopic(ctx, &sns.ListSubscriptionsByTopicInput{TopicArn: &arn, NextToken: next})
		if err != nil {
			return nil, nil, cloud.Failed("listing the subscriptions of", arn, err)
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

// topicAbsent implements boto_sns.absent.
type topicAbsent struct {
	cloud.Common
	Name        string `sls:"name"`
	Unsubscribe bool   `sls:"unsubscribe"`
}

// Check implements module.Resource.
func (t *topicAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := t.Cloud.Account(ctx, "sns", t.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	arn, err := TopicARN(ctx, a, t.Name)
	if arn != "" && err == nil {
		has, lost := subscriptions(ctx, snsOf(a), arn)
		switch {
		case cloud.HasCode(lost, "NotFound", "NotFoundException"):
			return t.Planned(p, nil)
		case lost != nil:
			return module.Diff{}, lost
		}
		p.Remove(arn, value.NewMap("topic", t.Name, "subscriptions", cloud.Sorted(slices.Collect(maps.Keys(has)))))
		p.Then("topic deleted", func(ctx context.Context) error {
			defer a.Forget("topics")
			_, err := snsOf(a).DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: &arn}) // AWS also deletes the subscriptions
			return cloud.Failed("deleting topic", t.Name, err)
		})
	}
	return t.Planned(p, err)
}
