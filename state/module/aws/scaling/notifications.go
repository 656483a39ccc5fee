package scaling

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// suspended plans which processes of the group are suspended.
func (g *asgPresent) suspended(_ context.Context, p *cloud.Plan, a *cloud.Account, has *types.AutoScalingGroup) error {
	if g.Suspended == nil {
		return nil
	}
	var old []string
	for _, s := range has.SuspendedProcesses {
		old = append(old, sdk.ToString(s.ProcessName))
	}
	want := cloud.Texts(g.Suspended)
	if !p.Compare("suspended_processes", cloud.Sorted(old), cloud.Sorted(want)) {
		return nil
	}
	suspend, resume := cloud.Apart(old, want)
	p.Then("processes suspended", func(ctx context.Context) (err error) {
		if len(suspend) > 0 {
			_, err = clientOf(a).SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &g.Name,
				ScalingProcesses: suspend})
		}
		if len(resume) > 0 && err == nil {
			_, err = clientOf(a).ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &g.Name,
				ScalingProcesses: resume})
		}
		return cloud.Failed("suspending processes of group", g.Name, err)
	})
	return nil
}

// notifications plans the notifications that the group sends to a topic.
func (g *asgPresent) notifications(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	_ *types.AutoScalingGroup) error {
	arn, kinds := g.Notify, g.NotifyTypes
	if v := g.Cloud.Option(g.NotifyPillar); arn == "" && v != nil {
		arn = value.Str(v)
	}
	if v := g.Cloud.Option(g.NotifyTypesPillar); len(kinds) == 0 && v != nil {
		kinds = cloud.Texts(v)
	}
	if arn == "" || len(kinds) == 0 {
		return nil
	}
	var old []string
	client := clientOf(a)
	if !p.Made {
		all, err := cloud.Pages(func(next *string) ([]types.NotificationConfiguration, *string, error) {
			page, err := client.DescribeNotificationConfigurations(ctx, &autoscaling.DescribeNotificationConfigurationsInput{
				AutoScalingGroupNames: []string{g.Name}, NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the notifications of group", g.Name, err)
			}
			return page.NotificationConfigurations, page.NextToken, nil
		})
		if err != nil {
			return err
		}
		for _, n := range all {
			if sdk.ToString(n.TopicARN) == arn {
				old = append(old, sdk.ToString(n.NotificationType))
			}
		}
	}
	if p.Compare("notification_types", cloud.Sorted(old), cloud.Sorted(kinds)) {
		p.Then("notifications set", func(ctx context.Context) error {
			_, err := client.PutNotificationConfiguration(ctx,
				&autoscaling.PutNotificationConfigurationInput{AutoScalingGroupName: &g.Name,
					TopicARN: &arn, NotificationTypes: kinds})
			return cloud.Failed("setting the notifications of group", g.Name, err)
		})
	}
	return nil
}
