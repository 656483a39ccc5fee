package elb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/elb/elbtest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	name = "myapp-testing-useast1"
	arn  = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/myapp/1"
)

func start(t *testing.T) (*elbtest.Services, *elb.Client) {
	t.Helper()
	s := elbtest.Start(t, name, arn)
	c, err := elbtest.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestHostEntersAndLeavesItsLoadBalancers(t *testing.T) {
	s, c := start(t)
	s.Answer(elbtest.How{Busy: 2, Healthy: 2, Drained: 3})
	all := elb.Balancers{Names: []string{name}, TargetGroups: []string{arn}}
	if err := c.Register(context.Background(), all, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !s.Has(name) || !s.Has(arn) {
		t.Error("the instance is not registered everywhere")
	}
	if requests := count(s.Actions(), "DescribeTargetHealth"); requests != 3 {
		t.Errorf("the health of the target was requested %d times, want 3, since the third response is healthy", requests)
	}
	if err := c.Deregister(context.Background(), all, time.Minute); err != nil {
		t.Fatal(err)
	}
	if s.Has(name) || s.Has(arn) {
		t.Error("the instance is still registered")
	}
	if requests := count(s.Actions(), "DescribeTargetHealth"); requests != 4 {
		t.Errorf("the health of the target was requested %d times, want 4, since the fourth response is drained", requests)
	}
}

func count(all []string, one string) (n int) {
	for _, a := range all {
		if a == one {
			n++
		}
	}
	return n
}

// TestRegisteredAreTheBalancersThatHaveTheInstance checks that both a healthy and an unhealthy instance count as
// registered, and a draining one does not.
func TestRegisteredAreTheBalancersThatHaveTheInstance(t *testing.T) {
	s, c := start(t)
	all := elb.Balancers{Names: []string{name}, TargetGroups: []string{arn}}
	s.Answer(elbtest.How{Healthy: elbtest.Never, Drained: elbtest.Never})
	for _, want := range [][]string{nil, {name}, {name, arn}} {
		for _, one := range want {
			if !s.Has(one) {
				s.Register(one)
			}
		}
		in, err := c.Registered(context.Background(), all)
		if err != nil || !slices.Equal(in.All(), want) {
			t.Errorf("the instance is registered with %v (%v), want %v", in, err, want)
		}
	}
}

func TestErrorOfTheAPIIsReported(t *testing.T) {
	s, c := start(t)
	err := c.Register(context.Background(), elb.Balancers{Names: []string{"other"}}, 0)
	if err == nil || !strings.Contains(err.Error(), "load balancer other: LoadBalancerNotFound: There is no other") ||
		!strings.Contains(diag.HintOf(err), "elb.names") {
		t.Errorf("error is %v, hint %q", err, diag.HintOf(err))
	}
	s.Answer(elbtest.How{Busy: 100})
	if err := c.Register(context.Background(), elb.Balancers{TargetGroups: []string{arn}}, 0); err == nil ||
		!strings.Contains(err.Error(), "Throttling") || s.Busy() != 95 {
		t.Errorf("a busy API: %v after %d tries, want an error after 5", err, 100-s.Busy())
	}
}

func TestInstanceThatStaysUnhealthyIsReported(t *testing.T) {
	s, c := start(t)
	s.Answer(elbtest.How{Healthy: elbtest.Never})
	err := c.Register(context.Background(), elb.Balancers{TargetGroups: []string{arn}}, 30*time.Millisecond)
	var late *elb.Late
	if !errors.As(err, &late) || !strings.Contains(err.Error(), "i-1 is not in service: "+arn+" says initial") {
		t.Errorf("error is %v", err)
	}
}
