package alarms

import (
	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// AlarmFields returns the fields of an alarm with the names that the argument attributes uses.
func AlarmFields(m types.MetricAlarm) *value.Map {
	dimensions := value.NewMap()
	for _, d := range m.Dimensions {
		dimensions.Set(sdk.ToString(d.Name), sdk.ToString(d.Value))
	}
	all := value.NewMap("metric", sdk.ToString(m.MetricName), "namespace", sdk.ToString(m.Namespace),
		"comparison", string(m.ComparisonOperator), "statistic", string(m.Statistic), "unit", string(m.Unit),
		"description", sdk.ToString(m.AlarmDescription), "treat_missing_data", sdk.ToString(m.TreatMissingData),
		"threshold", sdk.ToFloat64(m.Threshold), "period", int(sdk.ToInt32(m.Period)),
		"evaluation_periods", int(sdk.ToInt32(m.EvaluationPeriods)), "dimensions", dimensions,
		"alarm_actions", cloud.Sorted(m.AlarmActions), "insufficient_data_actions", cloud.Sorted(m.InsufficientDataActions),
		"ok_actions", cloud.Sorted(m.OKActions))
	if m.DatapointsToAlarm != nil {
		all.Set("datapoints_to_alarm", int(*m.DatapointsToAlarm))
	}
	return all
}

func alarmInput(name string, want *value.Map) *cloudwatch.PutMetricAlarmInput {
	threshold, _ := want.Value("threshold").(float64)
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, MetricName: sdk.String(cloud.Text(want, "metric")),
		Namespace:          sdk.String(cloud.Text(want, "namespace")),
		ComparisonOperator: types.ComparisonOperator(cloud.Text(want, "comparison")), Threshold: &threshold,
		Statistic: types.Statistic(cloud.Text(want, "statistic")), Unit: types.StandardUnit(cloud.Text(want, "unit")),
		AlarmDescription: sdk.String(cloud.Text(want, "description")), AlarmActions: cloud.Texts(want.Value("alarm_actions")),
		InsufficientDataActions: cloud.Texts(want.Value("insufficient_data_actions")),
		OKActions:               cloud.Texts(want.Value("ok_actions")),
	}
	if v := cloud.Text(want, "treat_missing_data"); v != "" {
		in.TreatMissingData = &v
	}
	for name, field := range map[string]**int32{"period": &in.Period, "evaluation_periods": &in.EvaluationPeriods,
		"datapoints_to_alarm": &in.DatapointsToAlarm} {
		if n, ok := cloud.Number(want, name); ok {
			*field = &n
		}
	}
	for key, v := range cloud.MapOf(want.Value("dimensions")).All() {
		in.Dimensions = append(in.Dimensions,
			types.Dimension{Name: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	return in
}
