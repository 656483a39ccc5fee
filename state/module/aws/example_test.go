package aws_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestTheExampleAppliesTwice applies the example tree while AWS throttles, and checks the resources. A second run must
// change nothing and send at most 3 requests for each resource.
func TestTheExampleAppliesTwice(t *testing.T) {
	a, tree := newExampleAccount(t), treeRunner{exampleTree, 8}
	a.throttle = map[string]int{"CreateLoadBalancer": 1, "CreateAutoScalingGroup": 1, "PutMetricAlarm": 1,
		"DescribeSecurityGroups": 1}
	planned := tree.run(context.Background(), t, a.cloud(), true, "orchestration.myapp")
	if len(a.balancers.all)+len(a.scaling.all)+len(a.queues.all)+len(a.groups.all) > 0 {
		t.Error("a dry run creates resources")
	}
	done := tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp")
	expectChanges(t, done)
	for i, r := range planned {
		if !matchesPlan(r.Predicted, done[i].Changes) {
			t.Errorf("the plan of %s is %s, and the run does %s", r.Name(), value.Repr(r.Predicted), value.Repr(done[i].Changes))
		}
	}
	a.count()
	expectNoChanges(t, tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp"), 10)
	requests := fmt.Sprint(a.requests)
	if n := a.count(); n > 3*10 {
		t.Errorf("a run with nothing to change makes %d requests for 10 resources: %s", n, requests)
	} else {
		t.Logf("%d requests for 10 resources: %s", n, requests)
	}
	a.readBack(t)
}

// TestAnInterruptedRunIsContinued interrupts a run while it creates the load balancer. Nothing that depends on it is
// created, and the next run creates the rest.
func TestAnInterruptedRunIsContinued(t *testing.T) {
	a, tree := newExampleAccount(t), treeRunner{exampleTree, 8}
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	a.before = func(operation string) {
		if operation == "CreateLoadBalancer" {
			interrupt()
		}
	}
	tree.run(ctx, t, a.cloud(), false, "orchestration.myapp")
	if len(a.balancers.all) != 1 || len(a.scaling.all)+len(a.alarms.all) > 0 {
		t.Errorf("an interrupted run leaves %d load balancers, %d groups and %d alarms", len(a.balancers.all),
			len(a.scaling.all), len(a.alarms.all))
	}
	a.before = nil
	for _, r := range tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp") {
		if r.Outcome != exec.Succeeded {
			t.Errorf("%s %s ends as %v: %s", r.Step.Function(), r.Name(), r.Outcome, r.Comment)
		}
	}
	expectNoChanges(t, tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp"), 10)
	a.readBack(t)
}

// TestAnErrorStopsWhatDependsOnIt has AWS refuse one resource of the example. Only the resources that depend on it are
// not created, and the next run creates them.
func TestAnErrorStopsWhatDependsOnIt(t *testing.T) {
	a, tree := newExampleAccount(t), treeRunner{exampleTree, 8}
	a.refuse = map[string]string{"CreateAutoScalingGroup": "LimitExceeded"}
	for _, r := range tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp") {
		fails := r.Step.State() == "boto_asg" || r.Step.State() == "boto_cloudwatch_alarm"
		if (r.Outcome == exec.Succeeded) == fails {
			t.Errorf("%s %s ends as %v: %s", r.Step.Function(), r.Name(), r.Outcome, r.Comment)
		}
	}
	if len(a.balancers.all) != 1 || len(a.queues.all) != 2 || len(a.alarms.all) > 0 {
		t.Errorf("there are %d load balancers, %d queues and %d alarms", len(a.balancers.all), len(a.queues.all),
			len(a.alarms.all))
	}
	a.refuse = nil
	tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp")
	expectNoChanges(t, tree.run(context.Background(), t, a.cloud(), false, "orchestration.myapp"), 10)
}

// TestAGroupThatIsBeingDeleted checks that a group whose deletion has begun is an error, and that it is created again
// after the deletion.
func TestAGroupThatIsBeingDeleted(t *testing.T) {
	groups := newScaling(2)
	i := newImitation(t, newSecurityGroups(0), groups, newTemplates())
	const arguments = "{name: g, launch_config_name: g, launch_config: [{image_id: ami-1}], availability_zones: " +
		"[us-east-1a], min_size: 0, max_size: 1}"
	runState(t, i.cloud(), "boto_asg.present", arguments, false)
	groups.all["g"].Status, groups.all["g"].deleting = sdk.String("Delete in progress"), &lag{1}
	if _, err := tryState(t, i.cloud(), "boto_asg.present", arguments, true); err == nil ||
		!strings.Contains(err.Error(), "group g is being deleted") {
		t.Errorf("a group that is being deleted gives %v", err)
	}
	if changes := runState(t, i.cloud(), "boto_asg.present", arguments, false); changes.Value("old") != nil ||
		groups.all["g"] == nil {
		t.Errorf("a deleted group is not created: %s", value.Repr(changes))
	}
}

// matchesPlan reports whether the changes of a run are those of its plan, apart from values that only AWS assigns.
func matchesPlan(plan, done any) bool {
	switch plan := plan.(type) {
	case string:
		return plan == "(known once it is made)" || plan == done
	case *value.Map:
		m, ok := done.(*value.Map)
		if !ok || !slices.Equal(plan.Names(), m.Names()) {
			return false
		}
		return !slices.ContainsFunc(plan.Names(), func(name string) bool {
			return !matchesPlan(plan.Value(name), m.Value(name))
		})
	case *value.List:
		l, ok := done.(*value.List)
		return ok && !slices.ContainsFunc(plan.Items, func(item any) bool {
			return !slices.ContainsFunc(l.Items, func(other any) bool { return matchesPlan(item, other) })
		})
	}
	return value.Equal(plan, done)
}

// expectEqual compares a property of AWS with the example. what describes the property.
func expectEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// readBack compares each property that the example sets with that at AWS.
func (a *exampleAccount) readBack(t *testing.T) {
	t.Helper()
	const name = "myapp-testing-useast1"
	ids := map[string]string{}
	for _, g := range a.groups.all {
		ids[*g.GroupName] = *g.GroupId
	}
	rules := map[string][]string{}
	for _, g := range a.groups.all {
		rules[*g.GroupName] = nil
		for _, p := range g.IpPermissions {
			rules[*g.GroupName] = append(rules[*g.GroupName], permissionText(p))
		}
		slices.Sort(rules[*g.GroupName])
	}
	expectEqual(t, "the security groups", rules,
		map[string][]string{"myapp": {"tcp 80-80 " + ids["myapp-elb"] + " of 123456789012"},
			"myapp-elb": {"tcp 443-443 0.0.0.0/0", "tcp 80-80 0.0.0.0/0"}, "myapp-testing": nil})
	expectEqual(t, "the queues", sortedKeys(a.queues.all), "[myapp-testing-example-queue-1 myapp-testing-example-queue-2]")
	a.readRole(t, name)
	a.readBalancer(t, name, ids)
	a.readGroup(t, name, ids)
	a.readAlarms(t, name)
}

func (a *exampleAccount) readRole(t *testing.T, name string) {
	t.Helper()
	role := a.roles.all[name]
	expectEqual(t, "the policies of the role", sortedKeys(role.inline), []string{"myapp-testing-sqs", name + "-deploy"})
	expectEqual(t, "the role of the instance profile", a.roles.profiles[name].role, name)
	var trust struct {
		Statement []struct{ Principal struct{ Service string } }
	}
	if err := json.Unmarshal([]byte(*role.AssumeRolePolicyDocument), &trust); err != nil {
		t.Fatal(err)
	}
	expectEqual(t, "who may assume the role", trust.Statement[0].Principal.Service, "ec2.amazonaws.com")
	if deploy := role.inline[name+"-deploy"]; !strings.Contains(deploy, "arn:aws:s3:::bootstrap/deploy/metadata/*") ||
		strings.Contains(deploy, `"s3:*"`) {
		t.Errorf("the role allows %s", deploy)
	}
}

func (a *exampleAccount) readBalancer(t *testing.T, name string, ids map[string]string) {
	t.Helper()
	b := a.balancers.all[name]
	var listeners []string
	for _, d := range b.ListenerDescriptions {
		listeners = append(listeners, fmt.Sprint(d.Listener.LoadBalancerPort, *d.Listener.Protocol, *d.Listener.InstancePort,
			*d.Listener.InstanceProtocol, sdk.ToString(d.Listener.SSLCertificateId)))
	}
	expectEqual(t, "the listeners", listeners,
		"[80HTTP80HTTP 443HTTPS80HTTParn:aws:iam::123456789012:server-certificate/a-certificate]")
	expectEqual(t, "the zones and check",
		[]any{b.AvailabilityZones, b.SecurityGroups, *b.Scheme, *b.HealthCheck.Target},
		[]any{[]string{"us-east-1a", "us-east-1b", "us-east-1c"}, []string{ids["myapp-elb"]}, "internet-facing", "HTTP:80/"})
	log := b.attributes.AccessLog
	expectEqual(t, "the log", []any{log.Enabled, *log.S3BucketName, *log.S3BucketPrefix, *log.EmitInterval},
		[]any{true, "logs", name, 5})
	set := sortedBy(a.zones.all)[0].sets[0]
	expectEqual(t, "the name", []any{*set.Name, set.Type, *set.TTL, *set.ResourceRecords[0].Value},
		[]any{"myapp-testing.example.com.", "CNAME", 60, *b.DNSName})
}

func (a *exampleAccount) readGroup(t *testing.T, name string, ids map[string]string) {
	t.Helper()
	g := a.scaling.all[name]
	expectEqual(t, "the group", []any{*g.MinSize, *g.MaxSize, g.AvailabilityZones, g.LoadBalancerNames,
		*g.LaunchTemplate.LaunchTemplateName,
		*g.LaunchTemplate.Version, *g.SuspendedProcesses[0].ProcessName, *g.Tags[0].Key, *g.Tags[0].Value,
		*g.Tags[0].PropagateAtLaunch},
		[]any{3, 30, []string{"us-east-1a", "us-east-1b", "us-east-1c"}, []string{name}, name, "1", "AddToLoadBalancer",
			"Name", name, true})
	for policy, want := range map[string][]any{"ScaleUp": {"ChangeInCapacity", 5, 1800},
		"ScaleDown": {"ChangeInCapacity", -1, 1800}} {
		p := g.policies[policy]
		expectEqual(t, policy, []any{*p.AdjustmentType, *p.ScalingAdjustment, *p.Cooldown}, want)
	}
	versions := a.templates.all[name]
	data := versions[0].LaunchTemplateData
	expectEqual(t, "the launch template", []any{len(versions), *data.ImageId, *data.KeyName, data.InstanceType,
		*data.Monitoring.Enabled, *data.IamInstanceProfile.Name, data.SecurityGroupIds, *data.UserData != ""},
		[]any{1, "ami-0123456789abcdef0", "example-key", "c6i.large", true, name,
			[]string{ids["myapp"], ids["myapp-testing"]}, true})
}

func (a *exampleAccount) readAlarms(t *testing.T, name string) {
	t.Helper()
	expectEqual(t, "the alarms", sortedKeys(a.alarms.all),
		[]string{name + "-asg-down-CPU-Utilization", name + "-asg-up-CPU-Utilization"})
	for direction, want := range map[string][]any{"up": {types.ComparisonOperatorGreaterThanOrEqualToThreshold, 50,
		"ScaleUp"},
		"down": {types.ComparisonOperatorLessThanOrEqualToThreshold, 10, "ScaleDown"}} {
		m := a.alarms.all[name+"-asg-"+direction+"-CPU-Utilization"]
		expectEqual(t, "the alarm "+direction,
			[]any{m.ComparisonOperator, *m.Threshold, *m.MetricName, *m.Namespace, m.Statistic,
				*m.Period,
				*m.EvaluationPeriods, *m.Dimensions[0].Name, *m.Dimensions[0].Value, m.AlarmActions, len(m.OKActions),
				len(m.InsufficientDataActions)},
			[]any{want[0], want[1], "CPUUtilization", "AWS/EC2", "Average", 300, 1, "AutoScalingGroupName", name,
				[]string{*a.scaling.all[name].policies[want[2].(string)].PolicyARN}, 0, 0})
	}
}
