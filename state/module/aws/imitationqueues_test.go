package aws_test

import (
	"maps"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// queues imitates SQS.
type queues struct {
	all     map[string]map[string]string // attributes by name
	deleted map[string]*lag              // by name: a deleted queue's name cannot be used for some requests
	lag     int
}

func newQueues(reads int) *queues {
	return &queues{all: map[string]map[string]string{}, deleted: map[string]*lag{}, lag: reads}
}

const queueHost = "https://queues.example/"

func (q *queues) answer(in any) (any, error) {
	switch in := in.(type) {
	case *sqs.GetQueueUrlInput:
		if q.all[*in.QueueName] == nil {
			return nil, fault("QueueDoesNotExist")
		}
		return &sqs.GetQueueUrlOutput{QueueUrl: sdk.String(queueHost + *in.QueueName)}, nil
	case *sqs.CreateQueueInput:
		if l := q.deleted[*in.QueueName]; l != nil && !l.over() {
			return nil, fault("QueueDeletedRecently")
		}
		if has := q.all[*in.QueueName]; has != nil && !maps.Equal(has, in.Attributes) {
			return nil, fault("QueueNameExists")
		}
		q.all[*in.QueueName] = maps.Clone(in.Attributes)
		if in.Attributes == nil {
			q.all[*in.QueueName] = map[string]string{}
		}
		return &sqs.CreateQueueOutput{QueueUrl: sdk.String(queueHost + *in.QueueName)}, nil
	case *sqs.GetQueueAttributesInput:
		return &sqs.GetQueueAttributesOutput{Attributes: maps.Clone(q.all[queueName(in.QueueUrl)])}, nil
	case *sqs.SetQueueAttributesInput:
		maps.Copy(q.all[queueName(in.QueueUrl)], in.Attributes)
		return &sqs.SetQueueAttributesOutput{}, nil
	case *sqs.DeleteQueueInput:
		delete(q.all, queueName(in.QueueUrl))
		q.deleted[queueName(in.QueueUrl)] = &lag{q.lag}
		return &sqs.DeleteQueueOutput{}, nil
	}
	return nil, nil
}

func queueName(url *string) string { return (*url)[len(queueHost):] }

// topics imitates SNS.
type topics struct {
	all map[string]*topic // by ARN
	lag int
}

type topic struct {
	arn           string
	unlisted      lag
	subscriptions []snstypes.Subscription
}

func newTopics(reads int) *topics { return &topics{all: map[string]*topic{}, lag: reads} }

func (s *topics) answer(in any) (any, error) {
	switch in := in.(type) {
	case *sns.CreateTopicInput:
		arn := "arn:aws:sns:us-east-1:123456789012:" + *in.Name
		if s.all[arn] == nil {
			s.all[arn] = &topic{arn: arn, unlisted: lag{s.lag}}
		}
		return &sns.CreateTopicOutput{TopicArn: &arn}, nil
	case *sns.ListTopicsInput:
		var list []snstypes.Topic
		for _, t := range sortedBy(s.all) {
			if t.unlisted.over() {
				list = append(list, snstypes.Topic{TopicArn: &t.arn})
			}
		}
		shown, next := page(list, in.NextToken)
		return &sns.ListTopicsOutput{Topics: shown, NextToken: next}, nil
	case *sns.DeleteTopicInput:
		delete(s.all, *in.TopicArn)
		return &sns.DeleteTopicOutput{}, nil
	case *sns.ListSubscriptionsByTopicInput:
		t := s.all[*in.TopicArn]
		if t == nil {
			return nil, fault("NotFound")
		}
		shown, next := page(t.subscriptions, in.NextToken)
		return &sns.ListSubscriptionsByTopicOutput{Subscriptions: shown, NextToken: next}, nil
	case *sns.SubscribeInput:
		t := s.all[sdk.ToString(in.TopicArn)]
		if t == nil {
			return nil, fault("NotFound")
		}
		t.subscriptions = append(t.subscriptions, snstypes.Subscription{TopicArn: in.TopicArn, Protocol: in.Protocol,
			Endpoint: in.Endpoint, SubscriptionArn: sdk.String("PendingConfirmation")})
		return &sns.SubscribeOutput{}, nil
	}
	return nil, nil
}

// alarms imitates the alarms of CloudWatch.
type alarms struct {
	all map[string]cloudwatchtypes.MetricAlarm
}

func newAlarms() *alarms { return &alarms{all: map[string]cloudwatchtypes.MetricAlarm{}} }

func (a *alarms) answer(in any) (any, error) {
	switch in := in.(type) {
	case *cloudwatch.DescribeAlarmsInput:
		var list []cloudwatchtypes.MetricAlarm
		for _, name := range in.AlarmNames {
			if one, ok := a.all[name]; ok {
				list = append(list, one)
			}
		}
		shown, next := page(list, in.NextToken)
		return &cloudwatch.DescribeAlarmsOutput{MetricAlarms: shown, NextToken: next}, nil
	case *cloudwatch.PutMetricAlarmInput:
		if in.TreatMissingData == nil {
			in.TreatMissingData = sdk.String("missing")
		}
		a.all[*in.AlarmName] = cloudwatchtypes.MetricAlarm{AlarmName: in.AlarmName, MetricName: in.MetricName,
			Namespace:          in.Namespace,
			ComparisonOperator: in.ComparisonOperator, Statistic: in.Statistic, Unit: in.Unit,
			AlarmDescription: in.AlarmDescription,
			TreatMissingData: in.TreatMissingData, Threshold: in.Threshold, Period: in.Period,
			EvaluationPeriods: in.EvaluationPeriods,
			DatapointsToAlarm: in.DatapointsToAlarm, Dimensions: in.Dimensions, AlarmActions: in.AlarmActions,
			InsufficientDataActions: in.InsufficientDataActions, OKActions: in.OKActions}
		return &cloudwatch.PutMetricAlarmOutput{}, nil
	case *cloudwatch.DeleteAlarmsInput:
		for _, name := range in.AlarmNames {
			delete(a.all, name)
		}
		return &cloudwatch.DeleteAlarmsOutput{}, nil
	}
	return nil, nil
}
