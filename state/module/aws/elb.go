package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func elbTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &elbPresent{common: common{cloud: c}, Scheme: "internet-facing", Wait: true,
				AttributesPillar: "boto_elb_attributes", AlarmsPillar: "boto_elb_alarms", PoliciesPillar: "boto_elb_policies"}
		},
		"absent": func() module.Resource { return &elbAbsent{common: common{cloud: c}} },
		"register_instances": func() module.Resource {
			return &elbInstances{common: common{cloud: c}}
		},
	}
}

func elbOf(a *account) *elb.Client { return elb.NewFromConfig(a.client("elb")) }

// elbPresent is boto_elb.present: a classic load balancer with its listeners, health check, attributes, policies, DNS
// names and alarms.
type elbPresent struct {
	common
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
	return e.check(e.look(ctx))
}

// describeELB reads a load balancer; nil for none.
func describeELB(ctx context.Context, a *account, name string) (*types.LoadBalancerDescription, error) {
	out, err := elbOf(a).DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{LoadBalancerNames: []string{name}})
	if code(err, "LoadBalancerNotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, failed("reading load balancer", name, err)
	}
	if len(out.LoadBalancerDescriptions) == 0 {
		return nil, nil
	}
	return &out.LoadBalancerDescriptions[0], nil
}

func (e *elbPresent) look(ctx context.Context) (*plan, error) {
	a, err := e.cloud.account(ctx, "elb", e.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	has, err := describeELB(ctx, a, e.Name)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.expect("elb", e.Name)
		if err := e.create(ctx, p, a); err != nil {
			return nil, err
		}
		has = &types.LoadBalancerDescription{}
	}
	parts := []func(context.Context, *plan, *account, *types.LoadBalancerDescription) error{
		e.policies, e.listenerDrift, e.places, e.groups, e.health, e.attributes, e.backends, e.instances, e.tags, e.cnames}
	for _, part := range parts {
		if err := part(ctx, p, a, has); err != nil {
			return nil, err
		}
	}
	err = alarmsOf(ctx, p, a, e.Alarms, e.cloud.setting(e.AlarmsPillar), e.Name, "LoadBalancerName", nil)
	return p, err
}

// create plans a new load balancer. What it is made with later parts do not plan again.
func (e *elbPresent) create(ctx context.Context, p *plan, a *account) error {
	listeners, err := e.listeners()
	if err != nil {
		return err
	}
	fields := value.NewMap("elb", e.Name, "listeners", shownListeners(listeners), "scheme", e.Scheme)
	if len(e.Zones) > 0 {
		fields.Set("availability_zones", sorted(e.Zones))
	} else {
		fields.Set("subnets", sorted(append(slices.Clone(e.Subnets), e.SubnetNames...)))
	}
	if _, _, err := e.wantedGroups(ctx, a); err != nil {
		return err
	}
	if len(e.Groups) > 0 {
		fields.Set("security_groups", sorted(e.Groups))
	}
	if e.Tags != nil {
		fields.Set("tags", e.Tags)
	}
	p.create(fields)
	p.then("load balancer made", func(ctx context.Context) error {
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
		if in.Subnets, err = subnetIDs(ctx, a, e.Subnets, e.SubnetNames); err != nil {
			return err
		}
		if in.SecurityGroups, _, err = e.wantedGroups(ctx, a); err != nil {
			return err
		}
		_, err = elbOf(a).CreateLoadBalancer(ctx, in)
		return failed("making load balancer", e.Name, err)
	})
	return nil
}

// wantedGroups are the IDs of the security groups, and the VPC they are in.
func (e *elbPresent) wantedGroups(ctx context.Context, a *account) (ids []string, vpc string, err error) {
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
	in, err := subnetIDs(ctx, a, e.Subnets, e.SubnetNames)
	if err != nil {
		return nil, "", err
	}
	if vpc, err = vpcOfSubnets(ctx, a, in); err != nil {
		return nil, "", err
	}
	ids, err = groupIDs(ctx, a, vpc, names)
	return ids, vpc, err
}

// listener is a listener with the names of its policies.
type listener struct {
	types.Listener
	policies []string
	managed  bool // the policies are declared
}

func (e *elbPresent) listeners() (all []listener, err error) {
	for _, item := range e.Listeners {
		m := mapOf(item)
		if l, ok := item.(*value.List); ok {
			m = positional(l.Items)
		}
		port, ok := number(m, "elb_port")
		protocol := strings.ToUpper(text(m, "elb_protocol"))
		if !ok || protocol == "" {
			return nil, diag.WithHint(fmt.Errorf("the listener %s lacks elb_port or elb_protocol", value.Repr(item)),
				"give both")
		}
		instance, ok := number(m, "instance_port")
		if !ok {
			instance = port
		}
		l := listener{Listener: types.Listener{LoadBalancerPort: port, Protocol: &protocol, InstancePort: &instance,
			InstanceProtocol: &protocol}, policies: texts(m.Value("policies")), managed: m.Has("policies")}
		if v := strings.ToUpper(text(m, "instance_protocol")); v != "" {
			l.InstanceProtocol = &v
		}
		if v := text(m, "certificate"); v != "" {
			l.SSLCertificateId = &v
		}
		all = append(all, l)
	}
	return all, nil
}

// positional reads a listener as a list: port, instance port, protocol, instance protocol, certificate; the second and
// the fourth may be missing.
func positional(items []any) *value.Map {
	m := value.NewMap()
	names := []string{"elb_port", "instance_port", "elb_protocol", "instance_protocol", "certificate"}
	if len(items) <= 3 {
		names = []string{"elb_port", "elb_protocol", "certificate"}
	}
	for i, v := range items {
		if i < len(names) {
			m.Set(names[i], v)
		}
	}
	return m
}

func shownListeners(all []listener) *value.List {
	list := value.NewList()
	slices.SortFunc(all, func(a, b listener) int { return int(a.LoadBalancerPort - b.LoadBalancerPort) })
	for _, l := range all {
		list.Append(shownListener(l.Listener))
	}
	return list
}

func shownListener(l types.Listener) *value.Map {
	m := value.NewMap("elb_port", int(l.LoadBalancerPort), "elb_protocol", strings.ToUpper(sdk.ToString(l.Protocol)),
		"instance_port", int(sdk.ToInt32(l.InstancePort)), "instance_protocol",
		strings.ToUpper(sdk.ToString(l.InstanceProtocol)))
	if l.SSLCertificateId != nil && *l.SSLCertificateId != "" {
		m.Set("certificate", *l.SSLCertificateId)
	}
	return m
}

// listenerDrift plans listeners that differ: they are deleted and made.
func (e *elbPresent) listenerDrift(_ context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	want, err := e.listeners()
	if err != nil {
		return err
	}
	now := map[int32]types.ListenerDescription{}
	var old []listener
	for _, d := range has.ListenerDescriptions {
		now[d.Listener.LoadBalancerPort] = d
		old = append(old, listener{Listener: *d.Listener})
	}
	var add []types.Listener
	var drop []int32
	kept := map[int32]bool{}
	for _, l := range want {
		kept[l.LoadBalancerPort] = true
		d, there := now[l.LoadBalancerPort]
		if there && a.config.BaseEndpoint != nil &&
			sdk.ToString(d.Listener.InstanceProtocol) == sdk.ToString(d.Listener.Protocol) {
			d.Listener.InstanceProtocol = l.InstanceProtocol // emulators of AWS keep none of their own
		}
		if there && value.Equal(shownListener(*d.Listener), shownListener(l.Listener)) {
			continue
		}
		if there {
			drop = append(drop, l.LoadBalancerPort)
		}
		add = append(add, l.Listener)
	}
	for _, d := range has.ListenerDescriptions {
		if !kept[d.Listener.LoadBalancerPort] {
			drop = append(drop, d.Listener.LoadBalancerPort)
		}
	}
	client := elbOf(a)
	if !p.made && len(add)+len(drop) > 0 {
		p.differ("listeners", shownListeners(old), shownListeners(want))
		p.then("listeners set", func(ctx context.Context) error {
			for _, port := range drop {
				if _, err := client.DeleteLoadBalancerListeners(ctx, &elb.DeleteLoadBalancerListenersInput{
					LoadBalancerName: &e.Name, LoadBalancerPorts: []int32{port}}); err != nil {
					return failed("deleting listeners of load balancer", e.Name, err)
				}
			}
			if len(add) == 0 {
				return nil
			}
			_, err := client.CreateLoadBalancerListeners(ctx, &elb.CreateLoadBalancerListenersInput{LoadBalancerName: &e.Name,
				Listeners: add})
			return failed("making listeners of load balancer", e.Name, err)
		})
	}
	for _, l := range want {
		d := now[l.LoadBalancerPort]
		if !l.managed || value.Equal(sorted(d.PolicyNames), sorted(l.policies)) {
			continue
		}
		p.differ(fmt.Sprintf("policies of port %d", l.LoadBalancerPort), sorted(d.PolicyNames), sorted(l.policies))
		p.then("listener policies set", func(ctx context.Context) error {
			_, err := client.SetLoadBalancerPoliciesOfListener(ctx, &elb.SetLoadBalancerPoliciesOfListenerInput{
				LoadBalancerName: &e.Name, LoadBalancerPort: l.LoadBalancerPort, PolicyNames: l.policies})
			return failed("setting policies of load balancer", e.Name, err)
		})
	}
	return nil
}

// places plans the zones or subnets.
func (e *elbPresent) places(ctx context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	client := elbOf(a)
	want, old, field := e.Zones, has.AvailabilityZones, "availability_zones"
	if len(e.Subnets)+len(e.SubnetNames) > 0 {
		ids, err := subnetIDs(ctx, a, e.Subnets, e.SubnetNames)
		if err != nil {
			return err
		}
		want, old, field = ids, has.Subnets, "subnets"
	}
	if p.made || len(want) == 0 || !p.compare(field, sorted(old), sorted(want)) {
		return nil
	}
	var add, drop []string
	for _, z := range want {
		if !slices.Contains(old, z) {
			add = append(add, z)
		}
	}
	for _, z := range old {
		if !slices.Contains(want, z) {
			drop = append(drop, z)
		}
	}
	p.then(field+" set", func(ctx context.Context) (err error) {
		switch {
		case field == "subnets" && len(add) > 0:
			_, err = client.AttachLoadBalancerToSubnets(ctx, &elb.AttachLoadBalancerToSubnetsInput{LoadBalancerName: &e.Name,
				Subnets: add})
		case len(add) > 0:
			_, err = client.EnableAvailabilityZonesForLoadBalancer(ctx, &elb.EnableAvailabilityZonesForLoadBalancerInput{
				LoadBalancerName: &e.Name, AvailabilityZones: add})
		}
		if err != nil {
			return failed("adding "+field+" to load balancer", e.Name, err)
		}
		switch {
		case field == "subnets" && len(drop) > 0:
			_, err = client.DetachLoadBalancerFromSubnets(ctx, &elb.DetachLoadBalancerFromSubnetsInput{LoadBalancerName: &e.Name,
				Subnets: drop})
		case len(drop) > 0:
			_, err = client.DisableAvailabilityZonesForLoadBalancer(ctx, &elb.DisableAvailabilityZonesForLoadBalancerInput{
				LoadBalancerName: &e.Name, AvailabilityZones: drop})
		}
		return failed("removing "+field+" of load balancer", e.Name, err)
	})
	return nil
}

// groups plans the security groups.
func (e *elbPresent) groups(ctx context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	if p.made || len(e.Groups) == 0 {
		return nil
	}
	_, vpc, err := e.wantedGroups(ctx, a)
	if err != nil {
		return err
	}
	differs, err := compareGroups(ctx, p, a, vpc, has.SecurityGroups, e.Groups)
	if !differs || err != nil {
		return err
	}
	p.then("security groups set", func(ctx context.Context) error {
		ids, _, err := e.wantedGroups(ctx, a)
		if err != nil {
			return err
		}
		_, err = elbOf(a).ApplySecurityGroupsToLoadBalancer(ctx, &elb.ApplySecurityGroupsToLoadBalancerInput{
			LoadBalancerName: &e.Name, SecurityGroups: ids})
		return failed("setting the security groups of load balancer", e.Name, err)
	})
	return nil
}

// health plans the health check.
func (e *elbPresent) health(_ context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	if e.Health.Len() == 0 {
		return nil
	}
	check := types.HealthCheck{HealthyThreshold: sdk.Int32(3), UnhealthyThreshold: sdk.Int32(5), Interval: sdk.Int32(30),
		Timeout: sdk.Int32(5), Target: sdk.String("TCP:80")}
	if has.HealthCheck != nil {
		check = *has.HealthCheck
	}
	numbers := map[string]**int32{"healthy_threshold": &check.HealthyThreshold,
		"unhealthy_threshold": &check.UnhealthyThreshold, "interval": &check.Interval, "timeout": &check.Timeout}
	differs := false
	for _, name := range e.Health.Names() {
		if name == "target" {
			want := text(e.Health, name)
			differs = p.compare("health_check "+name, sdk.ToString(check.Target), want) || differs
			check.Target = &want
			continue
		}
		field := numbers[name]
		n, ok := number(e.Health, name)
		if field == nil || !ok {
			return diag.WithHint(fmt.Errorf("health_check has no %s, or it is no number", name),
				"it has target, interval, timeout, healthy_threshold and unhealthy_threshold")
		}
		differs = p.compare("health_check "+name, int(sdk.ToInt32(*field)), int(n)) || differs
		*field = &n
	}
	if differs || p.made {
		p.then("health check set", func(ctx context.Context) error {
			_, err := elbOf(a).ConfigureHealthCheck(ctx, &elb.ConfigureHealthCheckInput{LoadBalancerName: &e.Name,
				HealthCheck: &check})
			return failed("setting the health check of load balancer", e.Name, err)
		})
	}
	return nil
}

// attributes plans the attributes: those of the pillar, and over them those of the arguments.
func (e *elbPresent) attributes(ctx context.Context, p *plan, a *account, _ *types.LoadBalancerDescription) error {
	want := value.NewMap()
	if m := mapOf(e.cloud.setting(e.AttributesPillar)); m != nil {
		want = value.Copy(m).(*value.Map)
	}
	value.Update(want, e.Attributes, true, false)
	if want.Len() == 0 {
		return nil
	}
	client, now := elbOf(a), &types.LoadBalancerAttributes{}
	if !p.made {
		out, err := client.DescribeLoadBalancerAttributes(ctx,
			&elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &e.Name})
		if err != nil {
			return failed("reading the attributes of load balancer", e.Name, err)
		}
		now = out.LoadBalancerAttributes
	}
	shown, set, differs := shownAttributes(now), &types.LoadBalancerAttributes{}, false
	for _, group := range want.Names() {
		m, old := mapOf(want.Value(group)), mapOf(shown.Value(group))
		if m == nil || old == nil {
			return diag.WithHint(fmt.Errorf("a load balancer has no attributes %s", group), "%s",
				diag.DidYouMean(group, shown.Names()))
		}
		merged := old.Clone()
		for _, name := range m.Names() {
			v := m.Value(name)
			if !old.Has(name) {
				return diag.WithHint(fmt.Errorf("%s has no attribute %s", group, name), "%s", diag.DidYouMean(name, old.Names()))
			}
			switch old.Value(name).(type) {
			case bool:
				v = value.Truth(v) && value.Str(v) != "false"
			case int:
				if n, ok := number(m, name); ok {
					v = int(n)
				}
			default:
				v = value.Str(v)
			}
			differs = p.compare("attributes "+group+":"+name, old.Value(name), v) || differs
			merged.Set(name, v)
		}
		setAttributes(set, group, merged)
	}
	if differs {
		p.then("attributes set", func(ctx context.Context) error {
			_, err := client.ModifyLoadBalancerAttributes(ctx, &elb.ModifyLoadBalancerAttributesInput{LoadBalancerName: &e.Name,
				LoadBalancerAttributes: set})
			return failed("setting the attributes of load balancer", e.Name, err)
		})
	}
	return nil
}

func shownAttributes(a *types.LoadBalancerAttributes) *value.Map {
	log, drain, cross, idle := a.AccessLog, a.ConnectionDraining, a.CrossZoneLoadBalancing, a.ConnectionSettings
	if log == nil {
		log = &types.AccessLog{}
	}
	if drain == nil {
		drain = &types.ConnectionDraining{}
	}
	if cross == nil {
		cross = &types.CrossZoneLoadBalancing{}
	}
	if idle == nil {
		idle = &types.ConnectionSettings{IdleTimeout: sdk.Int32(60)}
	}
	interval, timeout := 60, 300 // AWS's defaults
	if log.EmitInterval != nil {
		interval = int(*log.EmitInterval)
	}
	if drain.Timeout != nil {
		timeout = int(*drain.Timeout)
	}
	return value.NewMap(
		"access_log", value.NewMap("enabled", log.Enabled, "s3_bucket_name", sdk.ToString(log.S3BucketName),
			"s3_bucket_prefix", sdk.ToString(log.S3BucketPrefix), "emit_interval", interval),
		"connection_draining", value.NewMap("enabled", drain.Enabled, "timeout", timeout),
		"cross_zone_load_balancing", value.NewMap("enabled", cross.Enabled),
		"connecting_settings", value.NewMap("idle_timeout", int(sdk.ToInt32(idle.IdleTimeout))))
}

func setAttributes(set *types.LoadBalancerAttributes, group string, m *value.Map) {
	enabled := value.Truth(m.Value("enabled"))
	switch group {
	case "access_log":
		set.AccessLog = &types.AccessLog{Enabled: enabled}
		if n, ok := number(m, "emit_interval"); ok && enabled {
			set.AccessLog.EmitInterval = &n
		}
		if v := text(m, "s3_bucket_name"); v != "" {
			set.AccessLog.S3BucketName = &v
		}
		if v := text(m, "s3_bucket_prefix"); v != "" {
			set.AccessLog.S3BucketPrefix = &v
		}
	case "connection_draining":
		set.ConnectionDraining = &types.ConnectionDraining{Enabled: enabled}
		if n, ok := number(m, "timeout"); ok && enabled {
			set.ConnectionDraining.Timeout = &n
		}
	case "cross_zone_load_balancing":
		set.CrossZoneLoadBalancing = &types.CrossZoneLoadBalancing{Enabled: enabled}
	case "connecting_settings":
		n, _ := number(m, "idle_timeout")
		set.ConnectionSettings = &types.ConnectionSettings{IdleTimeout: &n}
	}
}

// policies plans the policies that listeners and back ends use.
func (e *elbPresent) policies(ctx context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	declared := slices.Concat(module.Items(e.cloud.setting(e.PoliciesPillar)), module.Items(e.Policies))
	if len(declared) == 0 {
		return nil
	}
	client, now := elbOf(a), map[string]bool{}
	if !p.made && has.Policies != nil {
		out, err := client.DescribeLoadBalancerPolicies(ctx,
			&elb.DescribeLoadBalancerPoliciesInput{LoadBalancerName: &e.Name})
		if err != nil {
			return failed("reading the policies of load balancer", e.Name, err)
		}
		for _, d := range out.PolicyDescriptions {
			now[sdk.ToString(d.PolicyName)] = true
		}
	}
	for _, item := range declared {
		m := mapOf(item)
		name, kind := text(m, "policy_name"), text(m, "policy_type")
		if now[name] {
			continue
		}
		p.differ("policy "+name, nil, kind)
		p.then("policy made", func(ctx context.Context) error {
			in := &elb.CreateLoadBalancerPolicyInput{LoadBalancerName: &e.Name, PolicyName: &name, PolicyTypeName: &kind}
			for key, v := range mapOf(m.Value("policy")).All() {
				text, err := attributeText(v)
				if err != nil {
					return err
				}
				in.PolicyAttributes = append(in.PolicyAttributes, types.PolicyAttribute{AttributeName: sdk.String(value.Str(key)),
					AttributeValue: &text})
			}
			_, err := client.CreateLoadBalancerPolicy(ctx, in)
			return failed("making a policy of load balancer", e.Name, err)
		})
	}
	return nil
}

// backends plans the policies of the ports of instances.
func (e *elbPresent) backends(_ context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	for _, item := range e.Backends {
		m := mapOf(item)
		port, ok := number(m, "instance_port")
		if !ok {
			return diag.WithHint(errors.New("a back end lacks instance_port"), "give the port of the instances")
		}
		var now []string
		for _, b := range has.BackendServerDescriptions {
			if sdk.ToInt32(b.InstancePort) == port {
				now = b.PolicyNames
			}
		}
		want := texts(m.Value("policies"))
		if !p.compare(fmt.Sprintf("policies of instance port %d", port), sorted(now), sorted(want)) {
			continue
		}
		p.then("policies of back end set", func(ctx context.Context) error {
			_, err := elbOf(a).SetLoadBalancerPoliciesForBackendServer(ctx, &elb.SetLoadBalancerPoliciesForBackendServerInput{
				LoadBalancerName: &e.Name, InstancePort: &port, PolicyNames: want})
			return failed("setting policies of load balancer", e.Name, err)
		})
	}
	return nil
}

// instances plans the instances, if they are declared.
func (e *elbPresent) instances(ctx context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	if e.InstanceIDs == nil && e.InstanceNames == nil {
		return nil
	}
	want := slices.Clone(e.InstanceIDs)
	for _, name := range e.InstanceNames {
		all, err := instancesOf(ctx, a, name, "")
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return missing("instance", name, "boto_ec2.instance_present")
		}
		for _, i := range all {
			want = append(want, sdk.ToString(i.InstanceId))
		}
	}
	return register(p, a, e.Name, has.Instances, want, true)
}

// register plans instances of a load balancer; only deregisters others.
func register(p *plan, a *account, name string, has []types.Instance, want []string, only bool) error {
	var old []string
	var add, drop []types.Instance
	for _, i := range has {
		old = append(old, sdk.ToString(i.InstanceId))
		if only && !slices.Contains(want, sdk.ToString(i.InstanceId)) {
			drop = append(drop, i)
		}
	}
	for _, id := range want {
		if !slices.Contains(old, id) {
			add = append(add, types.Instance{InstanceId: &id})
		}
	}
	if len(add)+len(drop) == 0 {
		return nil
	}
	p.differ("instances", sorted(old), sorted(want))
	p.then("instances registered", func(ctx context.Context) (err error) {
		if len(add) > 0 {
			_, err = elbOf(a).RegisterInstancesWithLoadBalancer(ctx,
				&elb.RegisterInstancesWithLoadBalancerInput{LoadBalancerName: &name, Instances: add})
		}
		if len(drop) > 0 && err == nil {
			_, err = elbOf(a).DeregisterInstancesFromLoadBalancer(ctx,
				&elb.DeregisterInstancesFromLoadBalancerInput{LoadBalancerName: &name, Instances: drop})
		}
		return failed("registering instances with load balancer", name, err)
	})
	return nil
}

// tags plans the tags.
func (e *elbPresent) tags(ctx context.Context, p *plan, a *account, _ *types.LoadBalancerDescription) error {
	if e.Tags == nil || p.made {
		return nil
	}
	client := elbOf(a)
	out, err := client.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: []string{e.Name}})
	if err != nil {
		return failed("reading the tags of load balancer", e.Name, err)
	}
	has := map[string]string{}
	for _, d := range out.TagDescriptions {
		for _, t := range d.Tags {
			has[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
		}
	}
	set, gone := tagDrift(p, has, e.Tags)
	if set.Len() > 0 {
		p.then("tags set", func(ctx context.Context) error {
			in := &elb.AddTagsInput{LoadBalancerNames: []string{e.Name}}
			for key, v := range set.All() {
				in.Tags = append(in.Tags, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
			}
			_, err := client.AddTags(ctx, in)
			return failed("tagging load balancer", e.Name, err)
		})
	}
	if len(gone) > 0 {
		p.then("tags removed", func(ctx context.Context) error {
			in := &elb.RemoveTagsInput{LoadBalancerNames: []string{e.Name}}
			for _, key := range gone {
				in.Tags = append(in.Tags, types.TagKeyOnly{Key: &key})
			}
			_, err := client.RemoveTags(ctx, in)
			return failed("removing tags of load balancer", e.Name, err)
		})
	}
	return nil
}

// cnames plans the names in Route 53 that lead to the load balancer.
func (e *elbPresent) cnames(ctx context.Context, p *plan, a *account, has *types.LoadBalancerDescription) error {
	for _, item := range e.CNAMEs {
		m := mapOf(item)
		r := record{Type: "CNAME", Zone: text(m, "zone"), Identifier: m.Value("identifier"), Wait: e.Wait,
			Private: value.Truth(m.Value("private_zone"))}
		name := text(m, "name")
		if ttl, ok := number(m, "ttl"); ok {
			r.TTL = int(ttl)
		}
		if m.Value("wait_for_sync") != nil {
			r.Wait = value.Truth(m.Value("wait_for_sync"))
		}
		if name == "" || r.Zone == "" {
			return diag.WithHint(fmt.Errorf("the cname %s lacks name or zone", value.Repr(item)), "give both")
		}
		dns := sdk.ToString(has.DNSName)
		resolve := func(ctx context.Context) (string, error) {
			if dns != "" {
				return dns, nil
			}
			now, err := describeELB(ctx, a, e.Name)
			if now == nil || err != nil {
				return later, err
			}
			return sdk.ToString(now.DNSName), nil
		}
		if err := r.look(ctx, p, a, name, "cname ", resolve); err != nil {
			return err
		}
	}
	return nil
}

// elbAbsent is boto_elb.absent.
type elbAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (e *elbAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := e.cloud.account(ctx, "elb", e.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := describeELB(ctx, a, e.Name)
	if has != nil && err == nil {
		p.remove(value.NewMap("elb", e.Name))
		p.then("load balancer deleted", func(ctx context.Context) error {
			_, err := elbOf(a).DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &e.Name})
			return failed("deleting load balancer", e.Name, err)
		})
	}
	return e.check(p, err)
}

// elbInstances is boto_elb.register_instances.
type elbInstances struct {
	common
	Name      string   `sls:"name"`
	Instances []string `sls:"instances,required"`
}

// Check implements module.Resource.
func (e *elbInstances) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := e.cloud.account(ctx, "elb", e.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := describeELB(ctx, a, e.Name)
	switch {
	case err != nil:
	case has != nil:
		err = register(p, a, e.Name, has.Instances, e.Instances, false)
	case a.expects("elb", e.Name):
		err = register(p, a, e.Name, nil, e.Instances, false)
	default:
		err = missing("load balancer", e.Name, "boto_elb.present")
	}
	return e.check(p, err)
}
