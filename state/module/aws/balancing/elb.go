// Package balancing has the states boto_elb, classic load balancers, and boto_elbv2, target groups.
package balancing

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ELBTable returns the state functions of boto_elb.
func ELBTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &elbPresent{Common: cloud.Common{Cloud: c}, Scheme: "internet-facing", Wait: true,
				AttributesPillar: "boto_elb_attributes", AlarmsPillar: "boto_elb_alarms", PoliciesPillar: "boto_elb_policies"}
		},
		"absent": func() module.Resource { return &elbAbsent{Common: cloud.Common{Cloud: c}} },
		"register_instances": func() module.Resource {
			return &elbInstances{Common: cloud.Common{Cloud: c}}
		},
	}
}

// ELBOf returns a client of classic load balancers.
func ELBOf(a *cloud.Account) *elb.Client { return elb.NewFromConfig(a.Client("elb")) }

// elbPresent implements boto_elb.present: a classic load balancer with its listeners, health check, attributes,
// policies, DNS names and alarms.
type elbPresent struct {
	cloud.Common
	Name             string     `sls:"name"`
	Listeners        []any      `sls:"listeners,required"`
	Zones            []string   `sls:"availability_zones"`
	Subnets          []string   `sls:"subnets"`
	SubnetNames      []string   `sls:"subnet_names"`
	Groups           []string   `sls:"security_groups"`
	Scheme           string     `sls:"scheme"`
	Health           *value.Map `sls:"health_check"`
	Attributes       *value.Map `sls:"attributes"`
	AttributesPillar string     `sls:"attributes_from_pillar"`
	CNAMEs           []any      `sls:"cnames"`
	Alarms           *value.Map `sls:"alarms"`
	AlarmsPillar     string     `sls:"alarms_from_pillar"`
	Policies         any        `sls:"policies"`
	PoliciesPillar   string     `sls:"policies_from_pillar"`
	Backends         []any      `sls:"backends"`
	Wait             bool       `sls:"wait_for_sync"`
	Tags             *value.Map `sls:"tags"`
	InstanceIDs      []string   `sls:"instance_ids"`
	InstanceNames    []string   `sls:"instance_names"`

	undeclared []string // policies of the load balancer that are not declared
}

// RunsBeside implements module.Concurrent.
func (*elbPresent) RunsBeside() {}

// Valid implements module.Validated.
func (e *elbPresent) Valid() error {
	if len(e.Zones) > 0 && len(e.Subnets)+len(e.SubnetNames) > 0 {
		return errors.New("a load balancer is in availability_zones or in subnets, not in both")
	}
	_, err := e.listeners()
	return err
}

// Check implements module.Resource.
func (e *elbPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return e.Planned(e.look(ctx))
}

// Describe returns the load balancer with a name, or nil if there is none.
func Describe(ctx context.Context, a *cloud.Account, name string) (*types.LoadBalancerDescription, error) {
	out, err := ELBOf(a).DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{LoadBalancerNames: []string{name}})
	if cloud.HasCode(err, "LoadBalancerNotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading load balancer", name, err)
	}
	if len(out.LoadBalancerDescriptions) == 0 {
		return nil, nil
	}
	return &out.LoadBalancerDescriptions[0], nil
}

func (e *elbPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := e.Cloud.Account(ctx, "elb", e.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	e.undeclared = nil
	has, err := Describe(ctx, a, e.Name)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.Expect("elb", e.Name)
		if err := e.create(ctx, p, a); err != nil {
			return nil, err
		}
		has = &types.LoadBalancerDescription{}
	}
	parts := []func(context.Context, *cloud.Plan, *cloud.Account, *types.LoadBalancerDescription) error{
		e.policies, e.listenerDrift, e.places, e.groups, e.health, e.attributes, e.backends, e.oldPolicies, e.instances,
		e.tags, e.cnames}
	for _, part := range parts {
		if err := part(ctx, p, a, has); err != nil {
			return nil, err
		}
	}
	err = alarms.Of(ctx, p, a, e.Alarms, e.Cloud.Option(e.AlarmsPillar), e.Name, "LoadBalancerName", nil)
	return p, err
}

// create plans to make a load balancer. Later parts do not plan again what the load balancer is made with.
func (e *elbPresent) create(ctx context.Context, p *cloud.Plan, a *cloud.Account) error {
	listeners, err := e.listeners()
	if err != nil {
		return err
	}
	fields := value.NewMap("elb", e.Name, "listeners", shownListeners(listeners), "scheme", e.Scheme)
	if len(e.Zones) > 0 {
		fields.Set("availability_zones", cloud.Sorted(e.Zones))
	} else {
		fields.Set("subnets", cloud.Sorted(append(slices.Clone(e.Subnets), e.SubnetNames...)))
	}
	if _, _, err := e.wantedGroups(ctx, a); err != nil {
		return err
	}
	if len(e.Groups) > 0 {
		fields.Set("security_groups", cloud.Sorted(e.Groups))
	}
	if e.Tags != nil {
		fields.Set("tags", e.Tags)
	}
	p.Create(fields)
	p.Then("load balancer made", func(ctx context.Context) error {
		in := &elb.CreateLoadBalancerInput{LoadBalancerName: &e.Name, AvailabilityZones: e.Zones}
		for _, l := range listeners {
			in.Listeners = append(in.Listeners, l.Listener)
		}
		if e.Scheme == "internal" {
			in.Scheme = &e.Scheme
		}
		for key, v := range e.Tags.All() {
			in.Tags = append(in.Tags, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
		}
		var err error
		if in.Subnets, err = network.SubnetIDs(ctx, a, e.Subnets, e.SubnetNames); err != nil {
			return err
		}
		if in.SecurityGroups, _, err = e.wantedGroups(ctx, a); err != nil {
			return err
		}
		_, err = ELBOf(a).CreateLoadBalancer(ctx, in)
		return cloud.Failed("making load balancer", e.Name, err)
	})
	return nil
}

// wantedGroups returns the IDs of the declared security groups, and the VPC that they are in.
func (e *elbPresent) wantedGroups(ctx context.Context, a *cloud.Account) (ids []string, vpc string, err error) {
	var names []string
	for _, g := range e.Groups {
		for one := range strings.SplitSeq(g, ",") {
			names = append(names, strings.TrimSpace(one))
		}
	}
	e.Groups = names
	if len(names) == 0 {
		return nil, "", nil
	}
	in, err := network.SubnetIDs(ctx, a, e.Subnets, e.SubnetNames)
	if err != nil {
		return nil, "", err
	}
	if vpc, err = network.VPCOfSubnets(ctx, a, in); err != nil {
		return nil, "", err
	}
	ids, err = network.GroupIDs(ctx, a, vpc, names)
	return ids, vpc, err
}

// elbAbsent implements boto_elb.absent.
type elbAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (e *elbAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := e.Cloud.Account(ctx, "elb", e.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := Describe(ctx, a, e.Name)
	if has != nil && err == nil {
		p.Remove(cloud.Born(has.DNSName, has.CreatedTime), value.NewMap("elb", e.Name))
		p.Then("load balancer deleted", func(ctx context.Context) error {
			_, err := ELBOf(a).DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &e.Name})
			return cloud.Failed("deleting load balancer", e.Name, err)
		})
	}
	return e.Planned(p, err)
}
