package elb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/myapp/1"

// balancers is a server that speaks the APIs as far as hosts use them.
type balancers struct {
	t       *testing.T
	mu      sync.Mutex
	busy    int                 // requests that are throttled first
	members map[string][]string // by balancer
	looks   int                 // at health; an instance is healthy at the second
	actions []string
}

func (b *balancers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		b.t.Error(err)
	}
	signed := r.Header.Get("Authorization")
	if !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKID/") ||
		!strings.Contains(signed, "/us-east-1/elasticloadbalancing/aws4_request") {
		b.fault(w, http.StatusForbidden, "AccessDenied", "not signed: "+signed)
		return
	}
	if b.busy > 0 {
		b.busy--
		b.fault(w, http.StatusBadRequest, "Throttling", "slower")
		return
	}
	action := r.Form.Get("Action")
	b.actions = append(b.actions, action)
	name, instance, version := r.Form.Get("LoadBalancerName"), r.Form.Get("Instances.member.1.InstanceId"), "2012-06-01"
	if strings.Contains(action, "Target") {
		name, instance, version = r.Form.Get("TargetGroupArn"), r.Form.Get("Targets.member.1.Id"), "2015-12-01"
	}
	if r.Form.Get("Version") != version {
		b.t.Errorf("%s has version %q, want %s", action, r.Form.Get("Version"), version)
	}
	if _, known := b.members[name]; !known {
		b.fault(w, http.StatusBadRequest, "LoadBalancerNotFound", "There is no "+name)
		return
	}
	b.answer(w, action, name, instance)
}

func (b *balancers) answer(w http.ResponseWriter, action, name, instance string) {
	in := slices.Contains(b.members[name], instance)
	switch action {
	case "RegisterInstancesWithLoadBalancer", "RegisterTargets":
		b.members[name] = append(b.members[name], instance)
	case "DeregisterInstancesFromLoadBalancer", "DeregisterTargets":
		b.members[name] = slices.DeleteFunc(b.members[name], func(m string) bool { return m == instance })
	case "DescribeInstanceHealth":
		if !in {
			b.fault(w, http.StatusBadRequest, "InvalidInstance", instance)
			return
		}
		fmt.Fprintf(w,
			"<DescribeInstanceHealthResponse><DescribeInstanceHealthResult><InstanceStates><member><State>%s</State></member></InstanceStates></DescribeInstanceHealthResult></DescribeInstanceHealthResponse>", b.state("OutOfService", "InService"))
		return
	case "DescribeTargetHealth":
		state := "unused"
		if in {
			state = b.state("initial", "healthy")
		}
		fmt.Fprintf(w,
			"<DescribeTargetHealthResponse><DescribeTargetHealthResult><TargetHealthDescriptions><member><TargetHealth><State>%s</State></TargetHealth></member></TargetHealthDescriptions></DescribeTargetHealthResult></DescribeTargetHealthResponse>", state)
		return
	}
	fmt.Fprintf(w, "<%sResponse/>", action)
}

func (b *balancers) state(first, then string) string {
	b.looks++
	if b.looks <= 2 {
		return first
	}
	return then
}

func (b *balancers) fault(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", code, message)
}

func start(t *testing.T) (*balancers, *elb.Client) {
	t.Helper()
	b := &balancers{t: t, members: map[string][]string{"myapp-testing-useast1": nil, arn: nil}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	for name, v := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKID",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"} {
		t.Setenv(name, v)
	}
	c, err := elb.Open(context.Background(), "us-east-1", "i-1")
	if err != nil {
		t.Fatal(err)
	}
	c.Pause = time.Millisecond
	return b, c
}

func TestHostEntersAndLeavesItsLoadBalancers(t *testing.T) {
	b, c := start(t)
	b.busy = 2
	all := elb.Balancers{Names: []string{"myapp-testing-useast1"}, TargetGroups: []string{arn}}
	if err := c.Register(context.Background(), all, time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, members := range b.members {
		if !slices.Equal(members, []string{"i-1"}) {
			t.Errorf("%s has %v", name, members)
		}
	}
	if b.looks < 3 {
		t.Errorf("it was looked %d times whether the instance is healthy", b.looks)
	}
	if err := c.Deregister(context.Background(), all, time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, members := range b.members {
		if len(members) != 0 {
			t.Errorf("%s still has %v", name, members)
		}
	}
}

func TestErrorOfTheAPIIsReported(t *testing.T) {
	b, c := start(t)
	err := c.Register(context.Background(), elb.Balancers{Names: []string{"other"}}, 0)
	if err == nil || !strings.Contains(err.Error(), "load balancer other: LoadBalancerNotFound: There is no other") ||
		!strings.Contains(diag.HintOf(err), "elb.names") {
		t.Errorf("error is %v, hint %q", err, diag.HintOf(err))
	}
	b.busy = 100
	if err := c.Register(context.Background(), elb.Balancers{TargetGroups: []string{arn}}, 0); err == nil ||
		!strings.Contains(err.Error(), "Throttling") || b.busy != 95 {
		t.Errorf("a busy API: %v after %d tries, want it given up after 5", err, 100-b.busy)
	}
}

func TestInstanceThatStaysUnhealthyIsReported(t *testing.T) {
	b, c := start(t)
	b.looks = -1 << 30
	err := c.Register(context.Background(), elb.Balancers{TargetGroups: []string{arn}}, 30*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "i-1 is not in service: "+arn+" says initial") {
		t.Errorf("error is %v", err)
	}
}
