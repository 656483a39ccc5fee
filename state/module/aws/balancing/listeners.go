package balancing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// listener is a declared listener with the names of its policies.
type listener struct {
	types.Listener
	policies []string
	managed  bool // the argument policies is given
}

// listenerFields returns the fields of a listener.
func listenerFields() cloud.Fields {
	return cloud.Fields{"elb_port": cloud.Whole, "elb_protocol": cloud.Word, "instance_port": cloud.Whole,
		"instance_protocol": cloud.Word, "certificate": cloud.Word, "policies": cloud.Anything}
}

func (e *elbPresent) listeners() (all []listener, err error) {
	for _, item := range e.Listeners {
		if err := listenerFields().Check("the listener "+value.Repr(item), item); err != nil {
			return nil, err
		}
		m := cloud.MapOf(item)
		port, ok := cloud.Number(m, "elb_port")
		protocol := strings.ToUpper(cloud.Text(m, "elb_protocol"))
		if !ok || protocol == "" {
			return nil, diag.Amazon.Hint(fmt.Errorf("the listener %s lacks elb_port or elb_protocol", value.Repr(item)),
				"write a mapping with both")
		}
		instance, ok := cloud.Number(m, "instance_port")
		if !ok {
			instance = port
		}
		l := listener{Listener: types.Listener{LoadBalancerPort: port, Protocol: &protocol, InstancePort: &instance,
			InstanceProtocol: &protocol}, policies: cloud.Texts(m.Value("policies")), managed: m.Has("policies")}
		if v := strings.ToUpper(cloud.Text(m, "instance_protocol")); v != "" {
			l.InstanceProtocol = &v
		}
		if v := cloud.Text(m, "certificate"); v != "" {
			l.SSLCertificateId = &v
		}
		all = append(all, l)
	}
	return all, nil
}

func shownListeners(all []listener) *value.List {
	list := value.NewList()
	slices.SortFunc(all, func(a, b listener) int { return int(a.LoadBalancerPort - b.LoadBalancerPort) })
	for _, l := range all {
		list.Append(ShownListener(l.Listener))
	}
	return list
}

// ShownListener returns a listener with the names that the argument listeners uses.
func ShownListener(l types.Listener) *value.Map {
	m := value.NewMap("elb_port", int(l.LoadBalancerPort), "elb_protocol", strings.ToUpper(sdk.ToString(l.Protocol)),
		"instance_port", int(sdk.ToInt32(l.InstancePort)), "instance_protocol",
		strings.ToUpper(sdk.ToString(l.InstanceProtocol)))
	if l.SSLCertificateId != nil && *l.SSLCertificateId != "" {
		m.Set("certificate", *l.SSLCertificateId)
	}
	return m
}

// listenerDrift plans to delete and make again the listeners that differ.
func (e *elbPresent) listenerDrift(_ context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	want, err := e.listeners()
	if err != nil {
		return err
	}
	declared, err := e.declaredPolicies()
	if err != nil {
		return err
	}
	for i := range want {
		want[i].policies = fullNames(declared, want[i].policies)
	}
	now := map[int32]types.ListenerDescription{}
	var old []listener
	for _, d := range has.ListenerDescriptions {
		now[d.Listener.LoadBalancerPort] = d
		old = append(old, listener{Listener: *d.Listener})
	}
	client := ELBOf(a)
	add, drop := changedListeners(a, want, now)
	if !p.Made && len(add)+len(drop) > 0 {
		p.Differ("listeners", shownListeners(old), shownListeners(want))
		p.Then("listeners set", func(ctx context.Context) error { return e.setListeners(ctx, client, add, drop) })
	}
	for _, port := range drop {
		delete(now, port) // a new listener has no policies
	}
	for _, l := range want {
		d := now[l.LoadBalancerPort]
		if !l.managed || value.Equal(cloud.Sorted(d.PolicyNames), cloud.Sorted(l.policies)) {
			continue
		}
		p.Differ(fmt.Sprintf("policies of port %d", l.LoadBalancerPort), cloud.Sorted(d.PolicyNames),
			cloud.Sorted(l.policies))
		p.Then("listener policies set", func(ctx context.Context) error {
			_, err := client.SetLoadBalancerPoliciesOfListener(ctx, &elb.SetLoadBalancerPoliciesOfListenerInput{
				LoadBalancerName: &e.Name, LoadBalancerPort: l.LoadBalancerPort,
				PolicyNames: append([]string{}, l.policies...)}) // nil is refused
			return cloud.Failed("setting policies of load balancer", e.Name, err)
		})
	}
	return nil
}

// changedListeners returns the listeners to make, and the ports of those to delete before.
func changedListeners(a *cloud.Account, want []listener,
	now map[int32]types.ListenerDescription) (add []types.Listener, drop []int32) {
	kept := map[int32]bool{}
	for _, l := range want {
		kept[l.LoadBalancerPort] = true
		d, there := now[l.LoadBalancerPort]
		if there && a.Config.BaseEndpoint != nil &&
			sdk.ToString(d.Listener.InstanceProtocol) == sdk.ToString(d.Listener.Protocol) {
			d.Listener.InstanceProtocol = l.InstanceProtocol // emulators of AWS do not store it
		}
		if there && value.Equal(ShownListener(*d.Listener), ShownListener(l.Listener)) {
			continue
		}
		if there {
			drop = append(drop, l.LoadBalancerPort)
		}
		add = append(add, l.Listener)
	}
	for port := range now {
		if !kept[port] {
			drop = append(drop, port)
		}
	}
	slices.Sort(drop)
	return add, drop
}

func (e *elbPresent) setListeners(ctx context.Context, client *elb.Client, add []types.Listener, drop []int32) error {
	for _, port := range drop {
		if _, err := client.DeleteLoadBalancerListeners(ctx, &elb.DeleteLoadBalancerListenersInput{
			LoadBalancerName: &e.Name, LoadBalancerPorts: []int32{port}}); err != nil {
			return cloud.Failed("deleting listeners of load balancer", e.Name, err)
		}
	}
	if len(add) == 0 {
		return nil
	}
	_, err := client.CreateLoadBalancerListeners(ctx,
		&elb.CreateLoadBalancerListenersInput{LoadBalancerName: &e.Name, Listeners: add})
	return cloud.Failed("making listeners of load balancer", e.Name, err)
}
