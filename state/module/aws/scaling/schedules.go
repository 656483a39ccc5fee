package scaling

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// scheduleFields returns the fields of a scheduled action.
func scheduleFields() cloud.Fields {
	return cloud.Fields{"desired_capacity": cloud.Whole, "min_size": cloud.Whole, "max_size": cloud.Whole,
		"recurrence": cloud.Word, "start_time": cloud.Word, "end_time": cloud.Word}
}

// actions plans the scheduled actions: those of the pillar, overridden by those of the arguments.
func (g *asgPresent) actions(ctx context.Context, p *cloud.Plan, a *cloud.Account, _ *types.AutoScalingGroup) error {
	want := value.NewMap()
	want.Update(cloud.MapOf(g.Cloud.Option(g.ActionsPillar)))
	want.Update(g.Actions)
	if want.Len() == 0 && g.Actions == nil {
		return nil
	}
	for name, v := range want.All() {
		if err := scheduleFields().Check("the scheduled action "+value.Str(name), v); err != nil {
			return err
		}
	}
	client, old := clientOf(a), value.NewMap()
	if !p.Made {
		all, err := cloud.Pages(func(next *string) ([]types.ScheduledUpdateGroupAction, *string, error) {
			page, err := client.DescribeScheduledActions(ctx,
				&autoscaling.DescribeScheduledActionsInput{AutoScalingGroupName: &g.Name,
					NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the scheduled actions of group", g.Name, err)
			}
			return page.ScheduledUpdateGroupActions, page.NextToken, nil
		})
		if err != nil {
			return err
		}
		for _, s := range all {
			old.Set(sdk.ToString(s.ScheduledActionName), actionFields(s,
				cloud.MapOf(want.Value(sdk.ToString(s.ScheduledActionName)))))
		}
	}
	for _, name := range want.Names() {
		m := cloud.MapOf(want.Value(name))
		one := value.NewMap()
		for _, field := range m.Names() {
			if n, ok := cloud.Number(m, field); ok && strings.Contains(field, "_size") || field == "desired_capacity" && ok {
				one.Set(field, int(n))
			} else if m.Value(field) != nil {
				one.Set(field, cloud.Text(m, field))
			}
		}
		want.Set(name, one)
	}
	if !p.Compare("scheduled_actions", old, want) {
		return nil
	}
	p.Then("scheduled actions set", func(ctx context.Context) error { return g.setActions(ctx, client, old, want) })
	return nil
}

func actionFields(s types.ScheduledUpdateGroupAction, want *value.Map) *value.Map {
	m := value.NewMap()
	for name, n := range map[string]*int32{"desired_capacity": s.DesiredCapacity, "min_size": s.MinSize,
		"max_size": s.MaxSize} {
		if n != nil && *n >= 0 {
			m.Set(name, int(*n))
		}
	}
	cloud.Put(m, "recurrence", s.Recurrence)
	for name, t := range map[string]*time.Time{"start_time": s.StartTime, "end_time": s.EndTime} {
		if t != nil && want.Has(name) {
			m.Set(name, t.UTC().Format(time.RFC3339))
			if v, err := time.Parse(time.RFC3339, cloud.Text(want, name)); err == nil && v.Equal(*t) {
				m.Set(name, cloud.Text(want, name))
			}
		}
	}
	return m
}

func (g *asgPresent) setActions(ctx context.Context, client *autoscaling.Client, old, want *value.Map) error {
	for _, name := range want.Names() {
		m := cloud.MapOf(want.Value(name))
		if value.Equal(m, old.Value(name)) {
			continue
		}
		in := &autoscaling.PutScheduledUpdateGroupActionInput{AutoScalingGroupName: &g.Name, ScheduledActionName: &name}
		for field, to := range map[string]**int32{"desired_capacity": &in.DesiredCapacity, "min_size": &in.MinSize,
			"max_size": &in.MaxSize} {
			if n, ok := cloud.Number(m, field); ok {
				*to = &n
			}
		}
		if v := cloud.Text(m, "recurrence"); v != "" {
			in.Recurrence = &v
		}
		for field, to := range map[string]**time.Time{"start_time": &in.StartTime, "end_time": &in.EndTime} {
			if v := cloud.Text(m, field); v != "" {
				t, err := time.Parse(time.RFC3339, v)
				if err != nil {
					return diag.Amazon.Hint(fmt.Errorf("%s of scheduled action %s: %w", field, name, err),
						"write 2030-01-31T08:00:00Z")
				}
				*to = &t
			}
		}
		if _, err := client.PutScheduledUpdateGroupAction(ctx, in); err != nil {
			return cloud.Failed("setting scheduled action", name, err)
		}
	}
	for _, name := range old.Names() {
		if !want.Has(name) {
			_, err := client.DeleteScheduledAction(ctx, &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: &g.Name,
				ScheduledActionName: &name})
			if err != nil {
				return cloud.Failed("deleting scheduled action", name, err)
			}
		}
	}
	return nil
}
