package grains_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// cloud is a fake metadata service that counts its requests.
type cloud struct {
	region, node, group string
	err                 error
	asked               int
}

func (c *cloud) Place(context.Context) (string, string, error) {
	c.asked++
	return c.region, c.node, c.err
}

func (c *cloud) Group(context.Context) (string, error) {
	c.asked++
	return c.group, c.err
}

func TestDecide(t *testing.T) {
	type id = grains.Identity
	const named, unnamed = "myapp-testing-useast1-898900.example.com", "ip-10-0-0-12.ec2.internal"
	ec2 := cloud{region: "uswest2", node: "0abc", group: "shop-live-useast1"}
	for _, c := range []struct {
		name   string
		r      grains.Request
		cloud  *cloud // nil outside of a cloud
		want   string
		origin grains.Origin
		asked  int
	}{
		{"a hostname that conforms decides", grains.Request{Hostname: named}, &ec2, "myapp-testing-useast1-898900",
			grains.FromHostname, 0},
		{"and may be confirmed",
			grains.Request{Hostname: named, Given: id{Service: "myapp", Instance: "testing", Region: "useast1", Node: "898900"}},
			&ec2, "myapp-testing-useast1-898900", grains.FromHostname, 0},
		{"and overrides the saved identity", grains.Request{Hostname: named,
			Configured: id{Service: "old", Instance: "old", Region: "local", Node: "x"}}, &ec2, "myapp-testing-useast1-898900",
			grains.FromHostname, 0},
		{"also with a convention with fewer parts, without a cloud call",
			grains.Request{Hostname: "myapp-testing", OnCloud: true, Convention: convention(t, "{service}-{instance}")}, &ec2,
			"myapp-testing-local-myapp-testing", grains.FromHostname, 0},
		{"which flags may complete", grains.Request{Hostname: "myapp-testing", Given: id{Region: "lab1", Node: "7"},
			Convention: convention(t, "{service}-{instance}")}, nil, "myapp-testing-lab1-7", grains.FromHostname, 0},

		{"else arguments", grains.Request{Hostname: "laptop.home", Given: id{Service: "myapp", Instance: "dev"}}, nil,
			"myapp-dev-local-laptop", grains.FromGiven, 0},
		{"with region and node", grains.Request{Hostname: "laptop",
			Given: id{Service: "myapp", Instance: "dev", Region: "lab1", Node: "7"}}, nil, "myapp-dev-lab1-7", grains.FromGiven,
			0},
		{"or those of the configuration", grains.Request{Hostname: "laptop",
			Given: id{Service: "myapp", Instance: "dev", Node: "7"}, Configured: id{Region: "lab2", Node: "8"}}, nil,
			"myapp-dev-lab2-7", grains.FromGiven, 0},
		{"no cloud call outside of a cloud", grains.Request{Hostname: "laptop",
			Given: id{Service: "myapp", Instance: "dev"}}, &ec2, "myapp-dev-local-laptop", grains.FromGiven, 0},
		{"a cloud call in a cloud", grains.Request{Hostname: unnamed, OnCloud: true,
			Given: id{Service: "myapp", Instance: "dev"}}, &ec2, "myapp-dev-uswest2-0abc", grains.FromGiven, 1},
		{"unless all is known", grains.Request{Hostname: unnamed, OnCloud: true,
			Given: id{Service: "myapp", Instance: "dev", Region: "lab1"}, Configured: id{Node: "7"}}, &ec2, "myapp-dev-lab1-7",
			grains.FromGiven, 0},
		{"and its silence is not a failure", grains.Request{Hostname: unnamed, OnCloud: true,
			Given: id{Service: "myapp", Instance: "dev"}}, &cloud{err: errors.New("silent")}, "myapp-dev-local-ip-10-0-0-12",
			grains.FromGiven, 1},
		{"arguments beat the configuration", grains.Request{Hostname: "laptop", Given: id{Service: "a", Instance: "b"},
			Configured: id{Service: "c", Instance: "d"}}, nil, "a-b-local-laptop", grains.FromGiven, 0},

		{"then the configuration", grains.Request{Hostname: unnamed,
			Configured: id{Service: "myapp", Instance: "dev", Region: "useast1", Node: "1"}}, &ec2, "myapp-dev-useast1-1",
			grains.FromConfig, 0},
		{"then the auto scaling group", grains.Request{Hostname: unnamed}, &ec2, "shop-live-useast1-0abc", grains.FromCloud,
			2},
		{"with flags", grains.Request{Hostname: unnamed, Given: id{Region: "lab1", Node: "7"}}, &ec2, "shop-live-lab1-7",
			grains.FromCloud, 2},
		{"and the cloud's region where the group has none", grains.Request{Hostname: unnamed,
			Convention: convention(t, "{service}-{instance}")}, &cloud{group: "shop-live", region: "uswest2", node: "0abc"},
			"shop-live-uswest2-0abc", grains.FromCloud, 2},
		{"a host without a name gets a node", grains.Request{Given: id{Service: "a", Instance: "b"}}, nil, "a-b-local-local",
			grains.FromGiven, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.cloud != nil {
				c.cloud.asked = 0
				c.r.Cloud = c.cloud
			}
			got, origin, err := grains.Decide(t.Context(), c.r)
			if err != nil || got.String() != c.want || origin != c.origin {
				t.Errorf("the decision is %s from %s, %v; want %s from %s", got, origin, err, c.want, c.origin)
			}
			if c.cloud != nil && c.cloud.asked != c.asked {
				t.Errorf("the cloud got %d requests, want %d", c.cloud.asked, c.asked)
			}
			if _, domain, _ := strings.Cut(c.r.Hostname, "."); got.Domain != domain {
				t.Errorf("the domain is %q, want %q", got.Domain, domain)
			}
		})
	}
}

func TestDecideRefuses(t *testing.T) {
	type id = grains.Identity
	const named = "myapp-testing-useast1-898900"
	silent := &cloud{err: errors.New("no answer")}
	for _, c := range []struct {
		name             string
		r                grains.Request
		message, hint    string
		mismatch, contra bool
	}{
		{"a stranger", grains.Request{Hostname: "web1"}, `hostname "web1" does not follow`, "deploy SERVICE INSTANCE", true,
			false},
		{"a stranger off the cloud", grains.Request{Hostname: "web1", Cloud: silent},
			"; and instance metadata does not tell: no answer", "deploy SERVICE INSTANCE", true, false},
		{"a group of another name", grains.Request{Hostname: "web1", Cloud: &cloud{group: "web-asg"}},
			`auto scaling group "web-asg" does not follow {service}-{instance}-{region}`, "deploy SERVICE INSTANCE", true,
			false},
		{"another service", grains.Request{Hostname: named, Given: id{Service: "shop", Instance: "testing"}},
			`the service was given as "shop", but hostname myapp-testing-useast1-898900 says "myapp"`, "rename the host", false,
			true},
		{"another instance", grains.Request{Hostname: named, Given: id{Service: "myapp", Instance: "live"}},
			`the instance was given as "live"`, "rename the host", false, true},
		{"another region", grains.Request{Hostname: named, Given: id{Region: "uswest2"}}, `the region was given as "uswest2"`,
			"rename the host", false, true},
		{"another node", grains.Request{Hostname: named, Given: id{Node: "2"}}, `the node was given as "2"`,
			"rename the host", false, true},
		{"base by its name", grains.Request{Hostname: "base-testing-useast1-1"},
			"this host is base testing by its hostname, and no host has base as its service", "another service", false, false},
		{"base as given", grains.Request{Hostname: "web1", Given: id{Service: "base", Instance: "testing"}},
			"no host has base as its service", "deploy SERVICE INSTANCE", false, false},
		{"base as configured", grains.Request{Hostname: "web1", Configured: id{Service: "base", Instance: "testing"}},
			"this host is base testing by its configuration", "another service", false, false},
		{"base by its group", grains.Request{Hostname: "web1", Cloud: &cloud{group: "base-testing-useast1"}},
			"this host is base testing by its instance metadata", "another service", false, false},
		{"half an identity", grains.Request{Hostname: "web1", Given: id{Service: "myapp"}},
			"only one of service and instance is given", "", false, false},
		{"half a configuration", grains.Request{Hostname: named, Configured: id{Instance: "testing"}},
			"only one of service and instance is configured", "", false, false},
		{"a path", grains.Request{Hostname: "web1", Given: id{Service: "../x", Instance: "testing"}},
			`the service is given as "../x", which is not a name`, "letters, digits", false, false},
		{"a long name", grains.Request{Hostname: "web1", Given: id{Service: "x", Instance: strings.Repeat("y", 64)}},
			"the instance is given as \"yyy", "within 63", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := grains.Decide(t.Context(), c.r)
			if err == nil || got != (grains.Identity{}) {
				t.Fatalf("the decision is %s, %v", got, err)
			}
			if !strings.Contains(err.Error(), c.message) || !strings.Contains(diag.HintOf(err), c.hint) {
				t.Errorf("the error reads %v, hint %q", err, diag.HintOf(err))
			}
			var mismatch *grains.MismatchError
			var conflict *grains.ConflictError
			if errors.As(err, &mismatch) != c.mismatch || errors.As(err, &conflict) != c.contra {
				t.Errorf("the error is of another kind: %v", err)
			}
		})
	}
}

// TestDecideReturnsTheMetadataError checks that a caller can distinguish a host outside of the cloud from one without
// permission.
func TestDecideReturnsTheMetadataError(t *testing.T) {
	cause := errors.New("no answer")
	_, _, err := grains.Decide(t.Context(), grains.Request{Hostname: "web1", Cloud: &cloud{err: cause}})
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap its cause", err)
	}
}
