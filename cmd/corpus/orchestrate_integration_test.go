//go:build integration

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	dns "github.com/aws/aws-sdk-go-v2/service/route53/types"
)

// counter forwards requests to an emulator, and counts them.
type counter struct {
	http.Handler
	mu          sync.Mutex
	all         int
	now, widest int
	refuse      int // one of so many requests is answered with 503; 0 for none
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.all++
	c.now++
	c.widest = max(c.widest, c.now)
	refused := c.refuse > 0 && c.all%c.refuse == 0
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	if refused {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.Handler.ServeHTTP(w, r)
}

func (c *counter) reset() { c.all, c.widest = 0, 0 }

// theExample runs the example tree against the emulator in MOTO_ENDPOINT.
func theExample(t *testing.T) (*orchestrator, *counter, sdk.Config) {
	t.Helper()
	endpoint := os.Getenv("MOTO_ENDPOINT")
	if endpoint == "" {
		t.Skip("MOTO_ENDPOINT names no emulator of AWS")
	}
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(endpoint+"/moto-api/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	o := newOrchestrator(t, map[string]string{"before.sls": `
zone: {boto_route53.hosted_zone_present: [name: example.com., domain_name: example.com., profile: aws_profile]}
logs: {boto_s3_bucket.present: [Bucket: logs, profile: aws_profile]}
`})
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	if err := os.CopyFS(o.dir+"/tree", os.DirFS("../../packaging/trees/orchestration")); err != nil {
		t.Fatal(err)
	}
	c := &counter{Handler: httputil.NewSingleHostReverseProxy(target)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	o.url = server.URL
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithRegion("us-east-1"),
		config.WithBaseEndpoint(endpoint),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	if err != nil {
		t.Fatal(err)
	}
	o.run(0, "before")
	return o, c, cfg
}

// TestTheExampleAppliesTwice applies the example tree while each seventh request fails, reads the resources through the
// SDK, and requires that a second run changes nothing, with at most 3 requests for each resource.
func TestTheExampleAppliesTwice(t *testing.T) {
	o, c, cfg := theExample(t)
	args := []string{"orchestration.myapp", "--set", "service_instance=testing"}
	c.refuse = 7
	if out, _ := o.run(0, args...); !strings.Contains(out, "made, 0 changed, 0 deleted, 0 failed") {
		t.Errorf("the first run prints %s", out)
	}
	c.refuse = 0
	c.reset()
	if out, _ := o.run(0, args...); !strings.Contains(out, "10 as declared, 0 to make, 0 to change, 0 to delete, "+
		"0 failed") {
		t.Errorf("a second run prints %s", out)
	}
	if c.all > 3*10 {
		t.Errorf("a run with nothing to change makes %d requests for 10 resources", c.all)
	}
	t.Logf("%d requests for 10 resources", c.all)
	readBack(t, cfg)
}

// must returns a value, and fails the test on an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// readBack compares the resources with the example tree.
func readBack(t *testing.T, cfg sdk.Config) {
	t.Helper()
	ctx, name := context.Background(), "myapp-testing-useast1"
	want := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	groups := must[*ec2.DescribeSecurityGroupsOutput](t)(ec2.NewFromConfig(cfg).DescribeSecurityGroups(ctx,
		&ec2.DescribeSecurityGroupsInput{
			Filters: []types.Filter{{Name: sdk.String("group-name"), Values: []string{"myapp", "myapp-elb", "myapp-testing"}}}}))
	ids := map[string]string{}
	for _, g := range groups.SecurityGroups {
		ids[*g.GroupName] = *g.GroupId
	}
	for _, g := range groups.SecurityGroups {
		var rules []string
		for _, p := range g.IpPermissions {
			for _, r := range p.IpRanges {
				rules = append(rules, fmt.Sprint(*p.FromPort, " ", *r.CidrIp))
			}
			for _, r := range p.UserIdGroupPairs {
				rules = append(rules, fmt.Sprint(*p.FromPort, " ", *r.GroupId))
			}
		}
		slices.Sort(rules)
		want("the rules of "+*g.GroupName, rules,
			map[string][]string{"myapp": {"80 " + ids["myapp-elb"]}, "myapp-testing": {},
				"myapp-elb": {"443 0.0.0.0/0", "80 0.0.0.0/0"}}[*g.GroupName])
	}
	balancers := must[*elb.DescribeLoadBalancersOutput](t)(elb.NewFromConfig(cfg).DescribeLoadBalancers(ctx,
		&elb.DescribeLoadBalancersInput{
			LoadBalancerNames: []string{name}}))
	b := balancers.LoadBalancerDescriptions[0]
	want("the number of listeners", len(b.ListenerDescriptions), 2)
	want("the health check", *b.HealthCheck.Target, "HTTP:80/")
	want("the groups of the load balancer", b.SecurityGroups, []string{ids["myapp-elb"]})
	attributes := must[*elb.DescribeLoadBalancerAttributesOutput](t)(
		elb.NewFromConfig(cfg).DescribeLoadBalancerAttributes(ctx,
			&elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &name})).LoadBalancerAttributes
	want("the log", []any{attributes.AccessLog.Enabled, *attributes.AccessLog.S3BucketName,
		*attributes.AccessLog.EmitInterval}, "[true logs 5]")
	zones := must[*route53.ListHostedZonesOutput](t)(route53.NewFromConfig(cfg).ListHostedZones(ctx,
		&route53.ListHostedZonesInput{}))
	sets := must[*route53.ListResourceRecordSetsOutput](t)(route53.NewFromConfig(cfg).ListResourceRecordSets(ctx,
		&route53.ListResourceRecordSetsInput{HostedZoneId: zones.HostedZones[0].Id,
			StartRecordName: sdk.String("myapp-testing.example.com.")}))
	i := slices.IndexFunc(sets.ResourceRecordSets, func(r dns.ResourceRecordSet) bool {
		return *r.Name == "myapp-testing.example.com."
	})
	if i < 0 {
		t.Fatal("the load balancer has no name in DNS")
	}
	want("the name", []any{*sets.ResourceRecordSets[i].ResourceRecords[0].Value, *sets.ResourceRecordSets[i].TTL},
		fmt.Sprint([]any{*b.DNSName, 60}))
	group :=
		must[*autoscaling.DescribeAutoScalingGroupsOutput](t)(autoscaling.NewFromConfig(cfg).DescribeAutoScalingGroups(ctx,
			&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})).AutoScalingGroups[0]
	want("the group", []any{*group.MinSize, *group.MaxSize, group.LoadBalancerNames,
		*group.LaunchTemplate.LaunchTemplateName,
		*group.SuspendedProcesses[0].ProcessName, *group.Tags[0].Value},
		fmt.Sprint([]any{3, 30, []string{name}, name, "AddToLoadBalancer", name}))
	policies := must[*autoscaling.DescribePoliciesOutput](t)(autoscaling.NewFromConfig(cfg).DescribePolicies(ctx,
		&autoscaling.DescribePoliciesInput{AutoScalingGroupName: &name}))
	arns := map[string]string{}
	for _, p := range policies.ScalingPolicies {
		arns[fmt.Sprint(*p.PolicyName, " ", *p.ScalingAdjustment, " ", *p.Cooldown)] = *p.PolicyARN
	}
	alarms := must[*cloudwatch.DescribeAlarmsOutput](t)(cloudwatch.NewFromConfig(cfg).DescribeAlarms(ctx,
		&cloudwatch.DescribeAlarmsInput{}))
	for _, a := range alarms.MetricAlarms {
		up := strings.Contains(*a.AlarmName, "asg-up")
		want("the action of "+*a.AlarmName, a.AlarmActions,
			[]string{map[bool]string{true: arns["ScaleUp 5 1800"], false: arns["ScaleDown -1 1800"]}[up]})
		want("the threshold of "+*a.AlarmName, *a.Threshold, map[bool]int{true: 50, false: 10}[up])
	}
	want("the number of alarms", len(alarms.MetricAlarms), 2)
	inline := must[*iam.ListRolePoliciesOutput](t)(iam.NewFromConfig(cfg).ListRolePolicies(ctx,
		&iam.ListRolePoliciesInput{RoleName: &name}))
	want("the policies of the role", inline.PolicyNames, []string{name + "-deploy", "myapp-testing-sqs"})
	profile := must[*iam.GetInstanceProfileOutput](t)(iam.NewFromConfig(cfg).GetInstanceProfile(ctx,
		&iam.GetInstanceProfileInput{InstanceProfileName: &name}))
	want("the role of the instance profile", *profile.InstanceProfile.Roles[0].RoleName, name)
	versions := must[*ec2.DescribeLaunchTemplateVersionsOutput](t)(
		ec2.NewFromConfig(cfg).DescribeLaunchTemplateVersions(ctx,
			&ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: &name}))
	data := versions.LaunchTemplateVersions[0].LaunchTemplateData
	slices.Sort(data.SecurityGroupIds)
	both := []string{ids["myapp"], ids["myapp-testing"]}
	slices.Sort(both)
	want("the launch template", []any{len(versions.LaunchTemplateVersions), data.SecurityGroupIds,
		*data.IamInstanceProfile.Name, *data.Monitoring.Enabled,
		*data.UserData != ""}, fmt.Sprint([]any{1, both, name, true, true}))
}

// TestManyEnvironments checks the requests for 20 environments without a change: their number per environment must not
// grow with the number of environments, and some must be concurrent.
func TestManyEnvironments(t *testing.T) {
	o, c, _ := theExample(t)
	var args []string
	text, err := os.ReadFile(o.dir + "/tree/orchestration/myapp.sls")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		name := fmt.Sprintf("e%d", i)
		sls := strings.ReplaceAll(string(text), "grains.get('service_instance', 'testing')", "'"+name+"'")
		// an emulator allows one policy of a name
		sls = strings.NewReplacer("myapp", name, "ScaleUp", "Up-"+name, "ScaleDown", "Down-"+name,
			"min_size: 3", "min_size: 0").Replace(sls)
		if err := os.WriteFile(o.dir+"/tree/"+name+".sls", []byte(sls), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	o.run(0, strings.Join(args, ","))
	c.reset()
	if out, _ := o.run(0, strings.Join(args, ",")); !strings.Contains(out,
		"200 as declared, 0 to make, 0 to change, 0 to delete, 0 failed") {
		t.Errorf("a second run prints %s", out)
	}
	t.Logf("%d requests for 200 resources, %d at once", c.all, c.widest)
	if c.all > 3*200 || c.widest < 6 || c.widest > 8 {
		t.Errorf("%d requests for 200 resources, %d at once", c.all, c.widest)
	}
}
