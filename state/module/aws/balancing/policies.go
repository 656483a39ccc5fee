package balancing

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// policy is a declared policy. AWS does not change policies. The name at AWS therefore contains a digest of the
// content, as in Salt, and a policy with new content is a new policy that replaces the one before.
type policy struct {
	name, kind, full string // full is the name at AWS
	content          *value.Map
}

// policyFields returns the fields of a policy, and backendFields those of a back end.
func policyFields() cloud.Fields {
	return cloud.Fields{"policy_name": cloud.Word, "policy_type": cloud.Word, "policy": cloud.Anything}
}

func backendFields() cloud.Fields {
	return cloud.Fields{"instance_port": cloud.Whole, "policies": cloud.Anything}
}

// declaredPolicies returns the policies of the pillar and of the argument, in their order.
func (e *elbPresent) declaredPolicies() (all []policy, err error) {
	for _, item := range slices.Concat(module.Items(e.Cloud.Option(e.PoliciesPillar)), module.Items(e.Policies)) {
		if err := policyFields().Check("the policy "+value.Repr(item), item); err != nil {
			return nil, err
		}
		m := cloud.MapOf(item)
		one := policy{name: cloud.Text(m, "policy_name"), kind: cloud.Text(m, "policy_type"),
			content: cloud.MapOf(m.Value("policy"))}
		if one.name == "" || one.kind == "" {
			return nil, diag.Amazon.Hint(fmt.Errorf("the policy %s lacks policy_name or policy_type", value.Repr(item)),
				"give both, and the attributes as policy")
		}
		if slices.ContainsFunc(all, func(o policy) bool { return o.name == one.name }) {
			return nil, diag.Amazon.Hint(fmt.Errorf("the policy %s is declared twice", one.name), "remove one, or rename it")
		}
		one.full = one.prefix() + one.digest()
		all = append(all, one)
	}
	return all, nil
}

// prefix returns the beginning of the names at AWS of all versions of a policy.
func (y policy) prefix() string { return strings.TrimSuffix(y.kind, "Type") + "-" + y.name + "-" }

// digest returns the digest that Salt computes: the MD5 of the sorted attributes in the notation of Python.
func (y policy) digest() string {
	names := y.content.Names()
	slices.Sort(names)
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, "("+value.Repr(name)+", "+value.Repr(y.content.Value(name))+")")
	}
	return fmt.Sprintf("%x", md5.Sum([]byte("["+strings.Join(pairs, ", ")+"]"))) //nolint:gosec // it only names
}

// fullNames returns names with those of declared policies replaced by their names at AWS. It keeps other names, such as
// those of policies of AWS.
func fullNames(all []policy, names []string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		for _, y := range all {
			if y.name == name {
				names[i] = y.full
			}
		}
	}
	return names
}

// policies plans to make the declared policies that do not exist, before listeners and back ends use them. It notes the
// policies that are no longer declared for oldPolicies.
func (e *elbPresent) policies(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	declared, err := e.declaredPolicies()
	if err != nil || e.Policies == nil && len(declared) == 0 {
		return err
	}
	now, err := e.presentPolicies(ctx, p, a, has)
	if err != nil {
		return err
	}
	for _, y := range declared {
		if now[y.full] != nil {
			continue
		}
		var old any
		for name, content := range now {
			if strings.HasPrefix(name, y.prefix()) {
				old = content
			}
		}
		p.Differ("policy "+y.name, old, y.shown())
		p.Then("policy made", func(ctx context.Context) error { return e.makePolicy(ctx, a, y) })
	}
	for name := range now {
		if !slices.ContainsFunc(declared, func(y policy) bool { return y.full == name }) {
			e.undeclared = append(e.undeclared, name)
		}
	}
	slices.Sort(e.undeclared)
	return nil
}

// presentPolicies returns the contents of the policies of a load balancer by their names at AWS, without the security
// policies of AWS.
func (e *elbPresent) presentPolicies(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) (map[string]*value.Map, error) {
	if p.Made || has.Policies == nil {
		return nil, nil
	}
	out, err := ELBOf(a).DescribeLoadBalancerPolicies(ctx,
		&elb.DescribeLoadBalancerPoliciesInput{LoadBalancerName: &e.Name})
	if err != nil {
		return nil, cloud.Failed("reading the policies of load balancer", e.Name, err)
	}
	now := map[string]*value.Map{}
	for _, d := range out.PolicyDescriptions {
		if strings.HasPrefix(sdk.ToString(d.PolicyName), "ELBSecurityPolicy-") {
			continue
		}
		content := value.NewMap("type", sdk.ToString(d.PolicyTypeName))
		for _, attribute := range d.PolicyAttributeDescriptions {
			content.Set(sdk.ToString(attribute.AttributeName), sdk.ToString(attribute.AttributeValue))
		}
		now[sdk.ToString(d.PolicyName)] = content
	}
	return now, nil
}

// shown returns a policy as a plan shows it.
func (y policy) shown() *value.Map {
	m := value.NewMap("type", y.kind)
	m.Update(y.content)
	return m
}

func (e *elbPresent) makePolicy(ctx context.Context, a *cloud.Account, y policy) error {
	in := &elb.CreateLoadBalancerPolicyInput{LoadBalancerName: &e.Name, PolicyName: &y.full, PolicyTypeName: &y.kind}
	for key, v := range y.content.All() {
		text, err := cloud.AttributeText(v)
		if err != nil {
			return err
		}
		in.PolicyAttributes = append(in.PolicyAttributes,
			types.PolicyAttribute{AttributeName: sdk.String(value.Str(key)), AttributeValue: &text})
	}
	_, err := ELBOf(a).CreateLoadBalancerPolicy(ctx, in)
	return cloud.Failed("making a policy of load balancer", e.Name, err)
}

// oldPolicies plans to delete the policies that are no longer declared, unless they are used by a listener or back end
// whose policies are not declared, or that is declared with them.
func (e *elbPresent) oldPolicies(_ context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	var used []string
	listeners, err := e.listeners()
	if err != nil {
		return err
	}
	for _, l := range listeners {
		used = append(used, l.policies...)
	}
	for _, item := range e.Backends {
		used = append(used, cloud.Texts(cloud.MapOf(item).Value("policies"))...)
	}
	for _, d := range has.ListenerDescriptions {
		if !e.managesPolicies(d.Listener.LoadBalancerPort) {
			used = append(used, d.PolicyNames...)
		}
	}
	for _, b := range has.BackendServerDescriptions {
		if !slices.ContainsFunc(e.Backends, func(item any) bool {
			port, _ := cloud.Number(cloud.MapOf(item), "instance_port")
			return port == sdk.ToInt32(b.InstancePort)
		}) {
			used = append(used, b.PolicyNames...)
		}
	}
	for _, name := range e.undeclared {
		if slices.Contains(used, name) {
			continue
		}
		p.Differ("policy "+name, name, nil)
		p.Then("policy deleted", func(ctx context.Context) error {
			_, err := ELBOf(a).DeleteLoadBalancerPolicy(ctx,
				&elb.DeleteLoadBalancerPolicyInput{LoadBalancerName: &e.Name, PolicyName: &name})
			return cloud.Failed("deleting a policy of load balancer", e.Name, err)
		})
	}
	return nil
}

// managesPolicies reports whether the policies of the listener on a port are declared, or the listener is deleted.
func (e *elbPresent) managesPolicies(port int32) bool {
	all, err := e.listeners()
	i := slices.IndexFunc(all, func(l listener) bool { return l.LoadBalancerPort == port })
	return err == nil && (i < 0 || all[i].managed)
}

// backends plans the policies of the instance ports.
func (e *elbPresent) backends(_ context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	declared, err := e.declaredPolicies()
	if err != nil {
		return err
	}
	for _, item := range e.Backends {
		if err := backendFields().Check("the back end "+value.Repr(item), item); err != nil {
			return err
		}
		m := cloud.MapOf(item)
		port, ok := cloud.Number(m, "instance_port")
		if !ok {
			return diag.Amazon.Hint(errors.New("a back end lacks instance_port"), "give the port of the instances")
		}
		var now []string
		for _, b := range has.BackendServerDescriptions {
			if sdk.ToInt32(b.InstancePort) == port {
				now = b.PolicyNames
			}
		}
		want := fullNames(declared, cloud.Texts(m.Value("policies")))
		if !p.Compare(fmt.Sprintf("policies of instance port %d", port), cloud.Sorted(now), cloud.Sorted(want)) {
			continue
		}
		p.Then("policies of back end set", func(ctx context.Context) error {
			_, err := ELBOf(a).SetLoadBalancerPoliciesForBackendServer(ctx, &elb.SetLoadBalancerPoliciesForBackendServerInput{
				LoadBalancerName: &e.Name, InstancePort: &port, PolicyNames: want})
			return cloud.Failed("setting policies of load balancer", e.Name, err)
		})
	}
	return nil
}
