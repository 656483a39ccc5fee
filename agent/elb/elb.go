// Package elb registers a host with its load balancers, classic ones and target groups, and deregisters it.
//
// Credentials, region and endpoints come from the usual sources of the AWS SDK: the environment, its configuration
// files, the instance's role, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING(_V2).
package elb

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/corpus-agent/corpus-agent/grains/ec2/account"
	"github.com/corpus-agent/corpus-agent/grains/ec2/query"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Balancers names load balancers.
type Balancers struct {
	Names        []string // classic load balancers
	TargetGroups []string // ARNs
}

// Empty reports whether b has no load balancers.
func (b Balancers) Empty() bool { return len(b.Names)+len(b.TargetGroups) == 0 }

// String returns all of them, separated by commas.
func (b Balancers) String() string { return strings.Join(b.All(), ", ") }

// All returns the names of the classic ones, and then the ARNs of the target groups.
func (b Balancers) All() []string { return slices.Concat(b.Names, b.TargetGroups) }

// OrNamed returns b, or the classic load balancer with a name if b is empty.
func (b Balancers) OrNamed(name string) Balancers {
	if b.Empty() {
		return Balancers{Names: []string{name}}
	}
	return b
}

// With returns b with those of others that it lacks.
func (b Balancers) With(others Balancers) Balancers {
	return Balancers{Names: union(b.Names, others.Names), TargetGroups: union(b.TargetGroups, others.TargetGroups)}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Late is the error of load balancers that did not report a state of the instance within the waiting time. The instance
// is registered or deregistered anyway.
type Late struct {
	instance, state string
	waited          time.Duration
	said            []string
}

func (l *Late) Error() string {
	return fmt.Sprintf("after %s %s is not %s: %s", diag.Elapsed(l.waited), l.instance, l.state,
		strings.Join(l.said, ", "))
}

// Client calls the APIs of load balancers for one instance.
type Client struct {
	Region   string // such as us-east-1
	Instance string // such as i-0123456789abcdef0
	// Pause is the wait between two tries, and between two checks of an instance's health; 2 s by default.
	Pause time.Duration

	account aws.Config
}

// Open loads the configuration of the SDK: region, credentials and endpoint.
func Open(ctx context.Context, region, instance string) (*Client, error) {
	loaded, err := account.Load(ctx, account.Options{Region: region})
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return &Client{Region: region, Instance: instance, account: loaded}, nil
}

// api is one of the two APIs.
type api struct {
	version  string
	endpoint string // environment variable that overrides the endpoint
}

func classic() api {
	return api{"2012-06-01", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING"}
}

func groups() api {
	return api{"2015-12-01", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2"}
}

// Register registers the instance with all load balancers. With a wait it returns when each of them reports the
// instance as healthy, or fails after the wait.
func (c *Client) Register(ctx context.Context, b Balancers, wait time.Duration) error {
	if err := c.each(ctx, b, "RegisterInstancesWithLoadBalancer", "RegisterTargets"); err != nil {
		return err
	}
	return c.waitFor(ctx, b, wait, "in service", "InService", "healthy")
}

// Deregister deregisters the instance from all load balancers. With a wait it returns when connections have drained, or
// fails after the wait.
func (c *Client) Deregister(ctx context.Context, b Balancers, wait time.Duration) error {
	if err := c.each(ctx, b, "DeregisterInstancesFromLoadBalancer", "DeregisterTargets"); err != nil {
		return err
	}
	return c.waitFor(ctx, b, wait, "out of service", "OutOfService", "unused")
}

// each calls an action for every load balancer, and joins the errors.
func (c *Client) each(ctx context.Context, b Balancers, onClassic, onGroup string) error {
	var errs []error
	for _, name := range b.Names {
		_, err := c.call(ctx, classic(), onClassic, url.Values{"LoadBalancerName": {name},
			"Instances.member.1.InstanceId": {c.Instance}})
		errs = append(errs, about(name, err))
	}
	for _, arn := range b.TargetGroups {
		_, err := c.call(ctx, groups(), onGroup, url.Values{"TargetGroupArn": {arn}, "Targets.member.1.Id": {c.Instance}})
		errs = append(errs, about(arn, err))
	}
	return errors.Join(errs...)
}

func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("load balancer %s: %w", name, err)
}

// waitFor polls until every balancer reports the wanted state of the instance.
func (c *Client) waitFor(ctx context.Context, b Balancers, wait time.Duration, what, classicWord,
	groupWord string) error {
	if wait <= 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var last []string // the states of the last complete poll
	for {
		pending, err := c.pending(within, b, classicWord, groupWord)
		if err == nil {
			last = pending
		}
		if err == nil && len(pending) == 0 {
			return nil
		}
		if within.Err() == nil && err != nil {
			return err
		}
		if !c.service(classic()).Wait(within, 1) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return diag.Balancer.Hint(&Late{c.Instance, what, wait, last},
				"look at the health check of the load balancer, and whether the service answers it")
		}
	}
}

// health is the health of an instance as both APIs report it.
type health struct {
	Classic []string `xml:"DescribeInstanceHealthResult>InstanceStates>member>State"`
	Group   []string `xml:"DescribeTargetHealthResult>TargetHealthDescriptions>member>TargetHealth>State"`
	Reason  []string `xml:"DescribeTargetHealthResult>TargetHealthDescriptions>member>TargetHealth>Reason"`
}

// idle reports whether no load balancer uses the target group, which then has no health of its targets.
func (h health) idle() bool { return slices.Contains(h.Reason, "Target.NotInUse") }

// Registered returns the load balancers of b with which the instance is registered.
func (c *Client) Registered(ctx context.Context, b Balancers) (in Balancers, err error) {
	for _, name := range b.Names {
		_, err := c.ofClassic(ctx, name)
		if absent(err) {
			continue
		}
		if err != nil {
			return in, about(name, err)
		}
		in.Names = append(in.Names, name)
	}
	for _, arn := range b.TargetGroups {
		h, err := c.ofGroup(ctx, arn)
		if err != nil {
			return in, about(arn, err)
		}
		out := len(h.Group) == 0 || h.Group[0] == "draining" || h.Group[0] == "unused" && !h.idle()
		if !out {
			in.TargetGroups = append(in.TargetGroups, arn)
		}
	}
	return in, nil
}

// absent reports whether a classic balancer reports that the instance is not registered with it.
func absent(err error) bool {
	var said *query.Fault
	return errors.As(err, &said) && said.Code == "InvalidInstance"
}

func (c *Client) ofClassic(ctx context.Context, name string) (health, error) {
	return c.health(ctx, classic(), "DescribeInstanceHealth",
		url.Values{"LoadBalancerName": {name}, "Instances.member.1.InstanceId": {c.Instance}})
}

func (c *Client) ofGroup(ctx context.Context, arn string) (health, error) {
	return c.health(ctx, groups(), "DescribeTargetHealth", url.Values{"TargetGroupArn": {arn},
		"Targets.member.1.Id": {c.Instance}})
}

// pending returns the load balancers that do not report the wanted state yet, with the states that they report.
func (c *Client) pending(ctx context.Context, b Balancers, classicWord, groupWord string) ([]string, error) {
	var pending []string
	for _, name := range b.Names {
		h, err := c.ofClassic(ctx, name)
		// A deregistered instance is no longer an instance of the balancer.
		if absent(err) && classicWord == "OutOfService" {
			continue
		}
		if err != nil {
			return pending, about(name, err)
		}
		if len(h.Classic) == 0 || h.Classic[0] != classicWord {
			pending = append(pending, name+" says "+strings.Join(h.Classic, " "))
		}
	}
	for _, arn := range b.TargetGroups {
		h, err := c.ofGroup(ctx, arn)
		if err != nil {
			return pending, about(arn, err)
		}
		if h.idle() && len(h.Group) > 0 && h.Group[0] == "unused" {
			continue
		}
		if len(h.Group) == 0 || h.Group[0] != groupWord {
			pending = append(pending, arn+" says "+strings.Join(h.Group, " "))
		}
	}
	return pending, nil
}

func (c *Client) health(ctx context.Context, a api, action string, form url.Values) (health, error) {
	var h health
	data, err := c.call(ctx, a, action, form)
	if err != nil {
		return h, err
	}
	// The root element of the response has the name of the action; its elements are decoded under any name.
	return h, xml.Unmarshal(data, &h)
}

// explain adds hints to common errors.
func explain(err error) error {
	var said *query.Fault
	if !errors.As(err, &said) {
		return err
	}
	switch said.Code {
	case "AccessDenied", "UnauthorizedOperation":
		return diag.Credentials.Hint(err, "let the instance's role call elasticloadbalancing for this load balancer")
	case "LoadBalancerNotFound", "TargetGroupNotFound":
		return diag.Balancer.Hint(err, "set elb.names or elb.target_groups in agent.yaml, or give --name or --target-group")
	}
	return err
}

func (c *Client) call(ctx context.Context, a api, action string, form url.Values) ([]byte, error) {
	data, err := c.service(a).Call(ctx, action, form)
	return data, explain(err)
}

func (c *Client) service(a api) *query.Client {
	return &query.Client{Account: c.account, Service: "elasticloadbalancing", Version: a.version,
		Variables: []string{a.endpoint}, Pause: c.Pause}
}
