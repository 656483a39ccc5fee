package aws

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
	"github.com/corpus-agent/corpus-agent/state/value"
)

func alarmTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &alarmPresent{common: common{cloud: c}} },
		"absent":  func() module.Resource { return &alarmAbsent{common: common{cloud: c}} },
	}
}

// alarmPresent is boto_cloudwatch_alarm.present.
type alarmPresent struct {
	common
	Name       string     `sls:"name"`
	Attributes *value.Map `sls:"attributes,required"`
}

// RunsBeside implements module.Concurrent.
func (*alarmPresent) RunsBeside() {}

// Valid implements module.Validated.
func (s *alarmPresent) Valid() error { return validAlarm(s.Attributes) }

// Check implements module.Resource.
func (s *alarmPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := s.cloud.account(ctx, "cloudwatch", s.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	return s.check(p, alarm(ctx, p, a, s.Name, s.Attributes, ""))
}

// comparisons are AWS's words for the comparisons of Salt.
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

func cloudwatchOf(a *account) *cloudwatch.Client {
	return cloudwatch.NewFromConfig(a.client("cloudwatch"))
}

// validAlarm refuses attributes that no alarm has.
func validAlarm(m *value.Map) error {
	known := []string{"metric", "namespace", "statistic", "comparison", "threshold", "period", "evaluation_periods",
		"unit",
		"description", "dimensions", "alarm_actions", "insufficient_data_actions", "ok_actions", "treat_missing_data",
		"datapoints_to_alarm"}
	for _, name := range m.Names() {
		if !slices.Contains(known, name) {
			return diag.WithHint(fmt.Errorf("an alarm has no attribute %s", name), "%s", diag.DidYouMean(name, known))
		}
	}
	for _, name := range []string{"metric", "namespace", "comparison", "threshold", "period", "evaluation_periods"} {
		if m.Value(name) == nil {
			return diag.WithHint(fmt.Errorf("the alarm lacks its attribute %s", name), "give it below attributes")
		}
	}
	if op := comparison(text(m, "comparison")); !slices.Contains(op.Values(), op) {
		return diag.WithHint(fmt.Errorf("%s is no comparison of an alarm", op), "write >=, >, <= or <")
	}
	return nil
}

// alarm plans an alarm. prefix is put before the names of its fields.
func alarm(ctx context.Context, p *plan, a *account, name string, attributes *value.Map, prefix string) error {
	if err := validAlarm(attributes); err != nil {
		return err
	}
	client := cloudwatchOf(a)
	out, err := client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
	if err != nil {
		return failed("reading alarm", name, err)
	}
	want, err := wantedAlarm(ctx, a, attributes)
	if err != nil {
		return err
	}
	switch {
	case len(out.MetricAlarms) == 0 && prefix == "":
		p.create(want)
		p.new.Set("alarm", name)
	case len(out.MetricAlarms) == 0:
		p.differ(prefix+name, nil, want)
	default:
		has := alarmFields(out.MetricAlarms[0])
		same := true
		for _, field := range want.Names() {
			same = !p.compare(prefix+field, has.Value(field), want.Value(field)) && same
		}
		if same {
			return nil
		}
	}
	p.then("alarm set", func(ctx context.Context) error {
		want, err := wantedAlarm(ctx, a, attributes)
		if err != nil {
			return err
		}
		_, err = client.PutMetricAlarm(ctx, alarmInput(name, want))
		return failed("setting alarm", name, err)
	})
	return nil
}

// wantedAlarm are the fields of an alarm as declared, with the ARNs of its actions.
func wantedAlarm(ctx context.Context, a *account, m *value.Map) (*value.Map, error) {
	want := value.NewMap("metric", text(m, "metric"), "namespace", text(m, "namespace"),
		"comparison", string(comparison(text(m, "comparison"))))
	for _, name := range []string{"statistic", "unit", "description", "treat_missing_data"} {
		if m.Value(name) != nil {
			want.Set(name, text(m, name))
		}
	}
	threshold, err := value.ToFloat(m.Value("threshold"))
	if err != nil {
		return nil, fmt.Errorf("threshold: %w", err)
	}
	want.Set("threshold", threshold)
	for _, name := range []string{"period", "evaluation_periods", "datapoints_to_alarm"} {
		if n, ok := number(m, name); ok {
			want.Set(name, int(n))
		}
	}
	dimensions := value.NewMap()
	for key, v := range mapOf(m.Value("dimensions")).All() {
		dimensions.Set(value.Str(key), strings.Join(texts(v), ","))
	}
	want.Set("dimensions", dimensions)
	for _, name := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
		if !m.Has(name) {
			continue
		}
		actions := value.NewList()
		for _, action := range texts(m.Value(name)) {
			arn, err := actionARN(ctx, a, action)
			if err != nil {
				return nil, err
			}
			actions.Append(arn)
		}
		want.Set(name, sorted(texts(actions)))
	}
	return want, nil
}

// actionARN is the ARN of an action: scaling_policy:GROUP:NAME is that of a policy.
func actionARN(ctx context.Context, a *account, action string) (string, error) {
	rest, ok := strings.CutPrefix(action, "scaling_policy:")
	if !ok {
		return action, nil
	}
	group, name, _ := strings.Cut(rest, ":")
	all, err := scalingPolicies(ctx, a, group)
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if sdk.ToString(one.PolicyName) == name {
			return sdk.ToString(one.PolicyARN), nil
		}
	}
	if a.expects("policy", group+":"+name) {
		return later, nil
	}
	return "", missing("scaling policy", group+":"+name, "scaling_policies of boto_asg.present")
}

// scalingPolicies are the policies of an auto scaling group.
func scalingPolicies(ctx context.Context, a *account, group string) ([]scaling.ScalingPolicy, error) {
	return remember(a, "policies:"+group, func() ([]scaling.ScalingPolicy, error) {
		return pages(func(next *string) ([]scaling.ScalingPolicy, *string, error) {
			page, err := asgOf(a).DescribePolicies(ctx, &autoscaling.DescribePoliciesInput{AutoScalingGroupName: &group,
				NextToken: next})
			if err != nil {
				return nil, nil, failed("listing the policies of group", group, err)
			}
			return page.ScalingPolicies, page.NextToken, nil
		})
	})
}

func alarmFields(m types.MetricAlarm) *value.Map {
	dimensions := value.NewMap()
	for _, d := range m.Dimensions {
		dimensions.Set(sdk.ToString(d.Name), sdk.ToString(d.Value))
	}
	all := value.NewMap("metric", sdk.ToString(m.MetricName), "namespace", sdk.ToString(m.Namespace),
		"comparison", string(m.ComparisonOperator), "statistic", string(m.Statistic), "unit", string(m.Unit),
		"description", sdk.ToString(m.AlarmDescription), "treat_missing_data", sdk.ToString(m.TreatMissingData),
		"threshold", sdk.ToFloat64(m.Threshold), "period", int(sdk.ToInt32(m.Period)),
		"evaluation_periods", int(sdk.ToInt32(m.EvaluationPeriods)), "dimensions", dimensions,
		"alarm_actions", sorted(m.AlarmActions), "insufficient_data_actions", sorted(m.InsufficientDataActions),
		"ok_actions", sorted(m.OKActions))
	if m.DatapointsToAlarm != nil {
		all.Set("datapoints_to_alarm", int(*m.DatapointsToAlarm))
	}
	return all
}

func alarmInput(name string, want *value.Map) *cloudwatch.PutMetricAlarmInput {
	threshold, _ := want.Value("threshold").(float64)
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, MetricName: sdk.String(text(want, "metric")), Namespace: sdk.String(text(want, "namespace")),
		ComparisonOperator: types.ComparisonOperator(text(want, "comparison")), Threshold: &threshold,
		Statistic: types.Statistic(text(want, "statistic")), Unit: types.StandardUnit(text(want, "unit")),
		AlarmDescription: sdk.String(text(want, "description")), AlarmActions: texts(want.Value("alarm_actions")),
		InsufficientDataActions: texts(want.Value("insufficient_data_actions")), OKActions: texts(want.Value("ok_actions")),
	}
	if v := text(want, "treat_missing_data"); v != "" {
		in.TreatMissingData = &v
	}
	for name, field := range map[string]**int32{"period": &in.Period, "evaluation_periods": &in.EvaluationPeriods,
		"datapoints_to_alarm": &in.DatapointsToAlarm} {
		if n, ok := number(want, name); ok {
			*field = &n
		}
	}
	for key, v := range mapOf(want.Value("dimensions")).All() {
		in.Dimensions = append(in.Dimensions,
			types.Dimension{Name: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	return in
}

// alarmsOf plans the alarms of another resource: those of the pillar, and over them those of its arguments. Their names
// begin with the resource's, and their dimension is the resource.
func alarmsOf(ctx context.Context, p *plan, a *account, given, fromPillar any, name, dimension string,
	skip func(*value.Map) bool) error {
	all := value.NewMap()
	if m := mapOf(fromPillar); m != nil {
		all = value.Copy(m).(*value.Map)
	}
	if m := mapOf(given); m != nil {
		value.Update(all, value.Copy(m).(*value.Map), true, false)
	}
	for key, v := range all.All() {
		one := mapOf(v)
		attributes := mapOf(one.Value("attributes"))
		if attributes == nil {
			return diag.WithHint(fmt.Errorf("the alarm %s has no attributes", value.Str(key)), "see boto_cloudwatch_alarm")
		}
		attributes = attributes.Clone()
		attributes.Set("dimensions", value.NewMap(dimension, value.NewList(name)))
		if text(attributes, "description") != "" {
			attributes.Set("description", name+" "+text(attributes, "description"))
		}
		for _, actions := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
			if attributes.Has(actions) {
				var named []string
				for _, action := range texts(attributes.Value(actions)) {
					named = append(named, strings.Replace(action, ":self:", ":"+name+":", 1))
				}
				attributes.Set(actions, value.Strings(named...))
			}
		}
		if skip != nil && skip(attributes) {
			continue
		}
		title := name
		if text(one, "name") != "" {
			title += " " + text(one, "name")
		}
		if err := alarm(ctx, p, a, title, attributes, "alarm "+value.Str(key)+": "); err != nil {
			return err
		}
	}
	return nil
}

// alarmAbsent is boto_cloudwatch_alarm.absent.
type alarmAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (s *alarmAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := s.cloud.account(ctx, "cloudwatch", s.Account)
	if err != nil {
		return module.Diff{}, err
	}
	client, p := cloudwatchOf(a), newPlan()
	out, err := client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{s.Name}})
	if err != nil {
		return module.Diff{}, failed("reading alarm", s.Name, err)
	}
	if len(out.MetricAlarms) > 0 {
		p.remove(value.NewMap("alarm", s.Name))
		p.then("alarm deleted", func(ctx context.Context) error {
			_, err := client.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{s.Name}})
			return failed("deleting alarm", s.Name, err)
		})
	}
	return s.check(p, nil)
}
