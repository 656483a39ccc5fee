// Package elbtest simulates the APIs of load balancers that hosts use.
package elbtest

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
)

// Instance is the instance of the client that Open returns.
const Instance = "i-1"

// Never is a number of checks that no test reaches.
const Never = 1 << 30

// Services simulates both APIs of load balancers.
type Services struct {
	t       *testing.T
	mu      sync.Mutex
	how     How
	members map[string][]string // by balancer
	looks   map[string]int      // checks of an instance since it was registered or deregistered, by balancer
	actions []string
}

// How configures the responses of the services.
type How struct {
	Busy    int    // requests that are throttled first
	Fault   string // code of a fault of all requests; "" for none
	Faulty  string // the action that alone has the fault; "" for all
	Healthy int    // checks of a registered instance until it is healthy
	Drained int    // checks of a deregistered target until it has drained
}

// Start starts services with load balancers of the given names; an ARN is that of a target group. It sets the
// environment of the test to use them.
func Start(t *testing.T, names ...string) *Services {
	t.Helper()
	s := &Services{t: t, members: map[string][]string{}, looks: map[string]int{}}
	for _, name := range names {
		s.members[name] = nil
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for name, v := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKID",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"} {
		t.Setenv(name, v)
	}
	return s
}

// Open returns a client of the services in the environment that waits only briefly between two requests.
func Open(ctx context.Context) (*elb.Client, error) {
	c, err := elb.Open(ctx, "us-east-1", Instance)
	if err == nil {
		c.Pause = time.Millisecond
	}
	return c, err
}

// Answer sets the configuration of all later responses.
func (s *Services) Answer(how How) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.how = how
}

// Busy returns how many requests are still to be throttled.
func (s *Services) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how.Busy
}

// Register registers the instance with a load balancer, as a person does.
func (s *Services) Register(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[name] = append(s.members[name], Instance)
	s.looks[name] = Never // it was healthy long before
}

// Has reports whether the instance is registered with a load balancer.
func (s *Services) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.members[name], Instance)
}

// Actions returns the actions that were requested since the last call.
func (s *Services) Actions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.actions
	s.actions = nil
	return all
}

// ServeHTTP implements http.Handler.
func (s *Services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		s.t.Error(err)
	}
	signed := r.Header.Get("Authorization")
	if !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKID/") ||
		!strings.Contains(signed, "/us-east-1/elasticloadbalancing/aws4_request") {
		fault(w, http.StatusForbidden, "AccessDenied", "not signed: "+signed)
		return
	}
	if s.how.Busy > 0 {
		s.how.Busy--
		fault(w, http.StatusBadRequest, "Throttling", "slower")
		return
	}
	action := r.Form.Get("Action")
	s.actions = append(s.actions, action)
	if s.how.Fault != "" && (s.how.Faulty == "" || s.how.Faulty == action) {
		fault(w, http.StatusBadRequest, s.how.Fault, "as the test wants it")
		return
	}
	name, instance, version := r.Form.Get("LoadBalancerName"), r.Form.Get("Instances.member.1.InstanceId"), "2012-06-01"
	if strings.Contains(action, "Target") {
		name, instance, version = r.Form.Get("TargetGroupArn"), r.Form.Get("Targets.member.1.Id"), "2015-12-01"
	}
	if r.Form.Get("Version") != version {
		s.t.Errorf("%s has version %q, want %s", action, r.Form.Get("Version"), version)
	}
	if _, known := s.members[name]; !known {
		fault(w, http.StatusBadRequest, "LoadBalancerNotFound", "There is no "+name)
		return
	}
	s.answer(w, action, name, instance)
}

func (s *Services) answer(w http.ResponseWriter, action, name, instance string) {
	in := slices.Contains(s.members[name], instance)
	switch action {
	case "RegisterInstancesWithLoadBalancer", "RegisterTargets":
		if !in {
			s.members[name], s.looks[name] = append(s.members[name], instance), 0
		}
	case "DeregisterInstancesFromLoadBalancer", "DeregisterTargets":
		if in {
			s.members[name] = slices.DeleteFunc(s.members[name], func(m string) bool { return m == instance })
			s.looks[name] = 0
		}
	case "DescribeInstanceHealth":
		if !in {
			fault(w, http.StatusBadRequest, "InvalidInstance", instance)
			return
		}
		fmt.Fprintf(w,
			"<DescribeInstanceHealthResponse><DescribeInstanceHealthResult><InstanceStates><member><State>%s</State>"+
				"</member></InstanceStates></DescribeInstanceHealthResult></DescribeInstanceHealthResponse>",
			s.after(name, s.how.Healthy, "OutOfService", "InService"))
		return
	case "DescribeTargetHealth":
		state := ""
		if in {
			state = s.after(name, s.how.Healthy, "initial", "healthy")
		} else {
			state = s.after(name, s.how.Drained, "draining", "unused")
		}
		fmt.Fprintf(w,
			"<DescribeTargetHealthResponse><DescribeTargetHealthResult><TargetHealthDescriptions><member><TargetHealth>"+
				"<State>%s</State></TargetHealth></member></TargetHealthDescriptions></DescribeTargetHealthResult>"+
				"</DescribeTargetHealthResponse>", state)
		return
	}
	fmt.Fprintf(w, "<%sResponse/>", action)
}

// after returns the first state for the given number of checks of a load balancer, and then the other state.
func (s *Services) after(name string, looks int, first, then string) string {
	s.looks[name]++
	if s.looks[name] <= looks {
		return first
	}
	return then
}

func fault(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", code, message)
}
