// Package alarms has the state boto_cloudwatch_alarm, and plans the alarms that states of other resources declare.
package alarms

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// AlarmTable returns the state functions of boto_cloudwatch_alarm.
func AlarmTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &alarmPresent{Common: cloud.Common{Cloud: c}} },
		"absent":  func() module.Resource { return &alarmAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

// alarmPresent implements boto_cloudwatch_alarm.present.
type alarmPresent struct {
	cloud.Common
	Name       string     `sls:"name"`
	Attributes *value.Map `sls:"attributes,required"`
}

// RunsBeside implements module.Concurrent.
func (*alarmPresent) RunsBeside() {}

// Valid implements module.Validated.
func (s *alarmPresent) Valid() error { return validAlarm(s.Attributes) }

// Check implements module.Resource.
func (s *alarmPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := s.Cloud.Account(ctx, "cloudwatch", s.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	return s.Planned(p, alarm(ctx, p, a, s.Name, s.Attributes, ""))
}

// comparisons returns the operators of AWS by the signs that Salt uses for them.
func comparisons() map[string]types.ComparisonOperator {
	return map[string]types.ComparisonOperator{
		">=": types.ComparisonOperatorGreaterThanOrEqualToThreshold, ">": types.ComparisonOperatorGreaterThanThreshold,
		"<=": types.ComparisonOperatorLessThanOrEqualToThreshold, "<": types.ComparisonOperatorLessThanThreshold,
	}
}

func comparison(text string) types.ComparisonOperator {
	if op, ok := comparisons()[text]; ok {
		return op
	}
	return types.ComparisonOperator(text)
}

// CloudwatchOf returns a client of CloudWatch.
func CloudwatchOf(a *cloud.Account) *cloudwatch.Client {
	return cloudwatch.NewFromConfig(a.Client("cloudwatch"))
}

// validAlarm returns an error if an alarm has unknown attributes, lacks required ones, or has an unknown comparison.
func validAlarm(m *value.Map) error {
	known := []string{"metric", "namespace", "statistic", "comparison", "threshold", "period", "evaluation_periods",
		"unit",
		"description", "dimensions", "alarm_actions", "insufficient_data_actions", "ok_actions", "treat_missing_data",
		"datapoints_to_alarm"}
	for _, name := range m.Names() {
		if !slices.Contains(known, name) {
			return diag.Amazon.Hint(fmt.Errorf("an alarm has no attribute %s", name), "%s", diag.DidYouMean(name, known))
		}
	}
	for _, name := range []string{"metric", "namespace", "comparison", "threshold", "period", "evaluation_periods"} {
		if m.Value(name) == nil {
			return diag.Amazon.Hint(fmt.Errorf("the alarm lacks its attribute %s", name), "give it below attributes")
		}
	}
	if err := cloud.OneOf("statistic", cloud.Text(m, "statistic"), types.Statistic("").Values()); err != nil {
		return err
	}
	if op := comparison(cloud.Text(m, "comparison")); !slices.Contains(op.Values(), op) {
		return diag.Amazon.Hint(fmt.Errorf("%s is not a comparison of alarms", op), "write >=, >, <= or <")
	}
	return nil
}

// alarm plans an alarm. prefix is put before the names of its fields.
func alarm(ctx context.Context, p *cloud.Plan, a *cloud.Account, name string, attributes *value.Map,
	prefix string) error {
	if err := validAlarm(attributes); err != nil {
		return err
	}
	client := CloudwatchOf(a)
	out, err := client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
	if err != nil {
		return cloud.Failed("reading alarm", name, err)
	}
	want, err := wantedAlarm(ctx, a, attributes)
	if err != nil {
		return err
	}
	switch {
	case len(out.MetricAlarms) == 0 && prefix == "":
		p.Create(want)
		p.New.Set("alarm", name)
	case len(out.MetricAlarms) == 0:
		p.Differ(prefix+name, nil, want)
	default:
		has := AlarmFields(out.MetricAlarms[0])
		same := true
		for _, field := range want.Names() {
			same = !p.Compare(prefix+field, has.Value(field), want.Value(field)) && same
		}
		if same {
			return nil
		}
	}
	p.Then("alarm set", func(ctx context.Context) error {
		want, err := wantedAlarm(ctx, a, attributes)
		if err != nil {
			return err
		}
		_, err = client.PutMetricAlarm(ctx, alarmInput(name, want))
		return cloud.Failed("setting alarm", name, err)
	})
	return nil
}

// wantedAlarm returns the declared fields of an alarm, with the ARNs of its actions.
func wantedAlarm(ctx context.Context, a *cloud.Account, m *value.Map) (*value.Map, error) {
	want := value.NewMap("metric", cloud.Text(m, "metric"), "namespace", cloud.Text(m, "namespace"),
		"comparison", string(comparison(cloud.Text(m, "comparison"))))
	for _, name := range []string{"statistic", "unit", "description", "treat_missing_data"} {
		if m.Value(name) != nil {
			want.Set(name, cloud.Text(m, name))
		}
	}
	threshold, err := value.ToFloat(m.Value("threshold"))
	if err != nil {
		return nil, fmt.Errorf("threshold: %w", err)
	}
	want.Set("threshold", threshold)
	for _, name := range []string{"period", "evaluation_periods", "datapoints_to_alarm"} {
		if n, ok := cloud.Number(m, name); ok {
			want.Set(name, int(n))
		}
	}
	dimensions := value.NewMap()
	for key, v := range cloud.MapOf(m.Value("dimensions")).All() {
		dimensions.Set(value.Str(key), strings.Join(cloud.Texts(v), ","))
	}
	want.Set("dimensions", dimensions)
	for _, name := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
		if !m.Has(name) {
			continue
		}
		actions := value.NewList()
		for _, action := range cloud.Texts(m.Value(name)) {
			arn, err := ActionARN(ctx, a, action)
			if err != nil {
				return nil, err
			}
			actions.Append(arn)
		}
		want.Set(name, cloud.Sorted(cloud.Texts(actions)))
	}
	return want, nil
}

// ActionARN returns the ARN of an action. An action scaling_policy:GROUP:NAME is the scaling policy NAME of an auto
// scaling group, and other actions are returned unchanged.
func ActionARN(ctx context.Context, a *cloud.Account, action string) (string, error) {
	rest, ok := strings.CutPrefix(action, "scaling_policy:")
	if !ok {
		return action, nil
	}
	group, name, _ := strings.Cut(rest, ":")
	arn, err := PolicyARN(ctx, a, group, name)
	switch {
	case err != nil || arn != "":
		return arn, err
	case a.Expects("policy", group+":"+name):
		return cloud.Later, nil
	}
	return "", cloud.Missing("scaling policy", group+":"+name, "scaling_policies of boto_asg.present")
}

// PolicyARN returns the ARN of a scaling policy of an auto scaling group, or "" if there is none.
func PolicyARN(ctx context.Context, a *cloud.Account, group, name string) (string, error) {
	all, err := ScalingPolicies(ctx, a, group)
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if sdk.ToString(one.PolicyName) == name {
			return sdk.ToString(one.PolicyARN), nil
		}
	}
	return "", nil
}

// ScalingPolicies returns the policies of an auto scaling group.
func ScalingPolicies(ctx context.Context, a *cloud.Account, group string) ([]scaling.ScalingPolicy, error) {
	client := autoscaling.NewFromConfig(a.Client("autoscaling"))
	return cloud.Remember(a, "policies:"+group, func() ([]scaling.ScalingPolicy, error) {
		return cloud.Pages(func(next *string) ([]scaling.ScalingPolicy, *string, error) {
			page, err := client.DescribePolicies(ctx, &autoscaling.DescribePoliciesInput{AutoScalingGroupName: &group,
				NextToken: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the policies of group", group, err)
			}
			return page.ScalingPolicies, page.NextToken, nil
		})
	})
}

// alarmAbsent implements boto_cloudwatch_alarm.absent.
type alarmAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (s *alarmAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := s.Cloud.Account(ctx, "cloudwatch", s.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	client, p := CloudwatchOf(a), cloud.NewPlan()
	out, err := client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{s.Name}})
	if err != nil {
		return module.Diff{}, cloud.Failed("reading alarm", s.Name, err)
	}
	if len(out.MetricAlarms) > 0 {
		has := out.MetricAlarms[0]
		p.Remove(cloud.Born(has.AlarmArn, has.AlarmConfigurationUpdatedTimestamp), value.NewMap("alarm", s.Name))
		p.Then("alarm deleted", func(ctx context.Context) error {
			_, err := client.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{s.Name}})
			return cloud.Failed("deleting alarm", s.Name, err)
		})
	}
	return s.Planned(p, nil)
}
