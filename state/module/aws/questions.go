package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// named is a function that takes the name of a resource.
func (q asked) named(service, argument string, ask func(ctx context.Context, a *account,
	name string) (any, error)) *function.Function {
	return function.Of(argument+reach,
		func(ctx context.Context, name, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, service, region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			return ask(ctx, a, name)
		})
}

// is makes an answer of what was found.
func is[T any](has *T, err error) (any, error) { return has != nil, err }

// questions are the functions that describe resources by name.
func (q asked) questions() function.Table {
	return function.Table{
		"boto_asg.get_config":    q.named("asg", "name", asgConfig),
		"boto_asg.get_instances": q.instancesOfGroup(),
		"boto_asg.launch_configuration_exists": q.named("asg", "name",
			func(ctx context.Context, a *account, name string) (any, error) {
				return is(templateOf(ctx, a, name))
			}),
		"boto_asg.get_scaling_policy_arn": function.Of("as_group, scaling_policy_name"+reach,
			func(ctx context.Context, group, policy, region, key, keyID string, profile any) (any, error) {
				a, err := q.account(ctx, "asg", region, key, keyID, profile)
				if err != nil {
					return nil, err
				}
				return actionARN(ctx, a, "scaling_policy:"+group+":"+policy)
			}),
		"boto_cloudwatch.get_alarm": q.named("cloudwatch", "name", alarmConfig),
		"boto_dynamodb.exists": q.named("dynamodb", "table_name",
			func(ctx context.Context, a *account, name string) (any, error) {
				return is(describeTable(ctx, a, name))
			}),
		"boto_dynamodb.describe": q.named("dynamodb", "table_name",
			func(ctx context.Context, a *account, name string) (any, error) {
				has, err := describeTable(ctx, a, name)
				if has == nil || err != nil {
					return value.NewMap(), err
				}
				plain, err := fromSDK(has)
				return value.NewMap("Table", plain), err
			}),
		"boto_ec2.exists":         q.instances("exists"),
		"boto_ec2.find_instances": q.instances("find"),
		"boto_ec2.get_id":         q.instances("id"),
		"boto_ec2.get_key": q.named("ec2", "key_name", func(ctx context.Context, a *account, name string) (any, error) {
			out, err := ec2Of(a).DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{name}})
			if code(err, "InvalidKeyPair.NotFound") || err == nil && len(out.KeyPairs) == 0 {
				return false, nil
			}
			if err != nil {
				return nil, failed("reading key pair", name, err)
			}
			return value.NewList(name, sdk.ToString(out.KeyPairs[0].KeyFingerprint)), nil
		}),
		"boto_elasticache.exists": q.named("elasticache", "name",
			func(ctx context.Context, a *account, name string) (any, error) {
				return is(describeCache(ctx, a, name))
			}),
		"boto_elasticache.subnet_group_exists": q.named("elasticache", "name",
			func(ctx context.Context, a *account, name string) (any, error) {
				return is(describeCacheSubnets(ctx, a, name))
			}),
		"boto_elasticache.group_exists": q.named("elasticache", "name",
			func(ctx context.Context, a *account, name string) (any, error) {
				return is(describeReplicas(ctx, a, name))
			}),
		"boto_elasticache.get_config":      q.named("elasticache", "name", cacheConfig),
		"boto_elb.get_attributes":          q.named("elb", "name", balancerAttributes),
		"boto_elb.get_health_check":        q.named("elb", "name", balancerHealth),
		"boto_elb.get_instance_health":     q.named("elb", "name", instanceHealth),
		"boto_iam.describe_role":           q.named("iam", "name", roleConfig),
		"boto_iam.instance_profile_exists": q.named("iam", "name", profileExists),
		"boto_iam.get_user":                q.named("iam", "user_name", memberConfig("user")),
		"boto_iam.get_group":               q.named("iam", "group_name", memberConfig("group")),
		"boto_kms.key_exists":              q.named("kms", "key_id", keyExists),
		"boto_route53.get_record":          q.record(),
		"boto_route53.zone_exists": q.named("route53", "zone",
			func(ctx context.Context, a *account, name string) (any, error) {
				id, _, err := zoneOf(ctx, a, name, false)
				return id != "", err
			}),
		"boto_s3_bucket.exists": q.named("s3", "Bucket", func(ctx context.Context, a *account, name string) (any, error) {
			there, _, err := bucketThere(ctx, a, name)
			return value.NewMap("exists", there), err
		}),
		"boto_secgroup.convert_to_group_ids": q.groupsByName(),
		"boto_vpc.describe":                  q.vpcDescription(),
		"boto_vpc.describe_subnets":          q.subnetDescriptions(),
		"boto_vpc.subnet_exists":             q.network("subnet"),
		"boto_vpc.route_table_exists":        q.network("route_table"),
	}
}

func asgConfig(ctx context.Context, a *account, name string) (any, error) {
	has, err := describeASG(ctx, a, name)
	if has == nil || err != nil {
		return value.NewMap(), err
	}
	suspended := []string{}
	for _, s := range has.SuspendedProcesses {
		suspended = append(suspended, sdk.ToString(s.ProcessName))
	}
	m := value.NewMap("name", name, "availability_zones", value.Strings(has.AvailabilityZones...),
		"min_size", int(sdk.ToInt32(has.MinSize)), "max_size", int(sdk.ToInt32(has.MaxSize)), "desired_capacity",
		int(sdk.ToInt32(has.DesiredCapacity)),
		"default_cooldown", int(sdk.ToInt32(has.DefaultCooldown)), "health_check_type", sdk.ToString(has.HealthCheckType),
		"health_check_period", int(sdk.ToInt32(has.HealthCheckGracePeriod)), "load_balancers",
		value.Strings(has.LoadBalancerNames...),
		"vpc_zone_identifier", sdk.ToString(has.VPCZoneIdentifier), "suspended_processes", value.Strings(suspended...))
	put(m, "launch_config_name", has.LaunchConfigurationName)
	if has.LaunchTemplate != nil {
		put(m, "launch_config_name", has.LaunchTemplate.LaunchTemplateName)
	}
	return m, nil
}

// instancesOfGroup is boto_asg.get_instances: an attribute of each instance of a group that serves.
func (q asked) instancesOfGroup() *function.Function {
	return function.Of("name, lifecycle_state='InService', health_status='Healthy', attribute='private_ip_address', "+
		"attributes=None"+reach,
		func(ctx context.Context, name, life, health, attribute string, _ any, region, key, keyID string,
			profile any) (any, error) {
			a, err := q.account(ctx, "asg", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			group, err := describeASG(ctx, a, name)
			if group == nil || err != nil {
				return value.NewList(), err
			}
			var ids []string
			for _, i := range group.Instances {
				if (life == "" || string(i.LifecycleState) == life) && (health == "" || sdk.ToString(i.HealthStatus) == health) {
					ids = append(ids, sdk.ToString(i.InstanceId))
				}
			}
			all := value.NewList()
			if len(ids) == 0 {
				return all, nil
			}
			list, err := instancesOf(ctx, a, name, "", filter("instance-id", ids...))
			for _, i := range list {
				v, known := map[string]*string{"private_ip_address": i.PrivateIpAddress, "ip_address": i.PublicIpAddress,
					"id": i.InstanceId, "private_dns_name": i.PrivateDnsName, "public_dns_name": i.PublicDnsName}[attribute]
				if !known {
					return nil,
						fmt.Errorf("an instance has no attribute %s: it has private_ip_address, ip_address, id, private_dns_name and "+
							"public_dns_name", attribute)
				}
				all.Append(sdk.ToString(v))
			}
			return all, err
		})
}

func alarmConfig(ctx context.Context, a *account, name string) (any, error) {
	out, err := cloudwatchOf(a).DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
	if err != nil {
		return nil, failed("reading alarm", name, err)
	}
	if len(out.MetricAlarms) == 0 {
		return nil, nil
	}
	m := alarmFields(out.MetricAlarms[0])
	m.Set("name", name)
	return m, nil
}

// instances are boto_ec2.exists, find_instances and get_id.
func (q asked) instances(what string) *function.Function {
	signature := map[string]string{"exists": "instance_id=None, name=None, tags=None",
		"find": "instance_id=None, name=None, tags=None", "id": "name=None, tags=None"}[what]
	find := func(ctx context.Context, id, name string, tags *value.Map, region, key, keyID string,
		profile, states any) (any, error) {
		a, err := q.account(ctx, "ec2", region, key, keyID, profile)
		if err != nil {
			return nil, err
		}
		var more []types.Filter
		for k, v := range tags.All() {
			more = append(more, filter("tag:"+value.Str(k), texts(v)...))
		}
		if name != "" && len(more) > 0 {
			more = append(more, byName(name)...)
		}
		all, err := instancesOf(ctx, a, name, id, more...)
		ids := value.NewList()
		for _, i := range all {
			if wanted := texts(states); len(wanted) == 0 || i.State != nil && slices.Contains(wanted, string(i.State.Name)) {
				ids.Append(sdk.ToString(i.InstanceId))
			}
		}
		switch {
		case err != nil || what == "find":
			return ids, err
		case what == "exists":
			return ids.Len() > 0, nil
		case ids.Len() != 1:
			return nil, nil
		}
		return ids.Items[0], nil
	}
	if what == "id" {
		return function.Of(signature+reach+", in_states=None, filters=None",
			func(ctx context.Context, name string, tags *value.Map, region, key, keyID string,
				profile, states, _ any) (any, error) {
				return find(ctx, "", name, tags, region, key, keyID, profile, states)
			})
	}
	return function.Of(signature+reach+", in_states=None, filters=None",
		func(ctx context.Context, id, name string, tags *value.Map, region, key, keyID string,
			profile, states, _ any) (any, error) {
			return find(ctx, id, name, tags, region, key, keyID, profile, states)
		})
}

func cacheConfig(ctx context.Context, a *account, name string) (any, error) {
	has, err := describeCache(ctx, a, name)
	if has == nil || err != nil {
		return value.NewMap(), err
	}
	m := value.NewMap("engine", sdk.ToString(has.Engine), "cache_node_type", sdk.ToString(has.CacheNodeType),
		"num_cache_nodes", int(sdk.ToInt32(has.NumCacheNodes)), "cache_cluster_status", sdk.ToString(has.CacheClusterStatus))
	put(m, "engine_version", has.EngineVersion)
	if e := has.ConfigurationEndpoint; e != nil {
		m.Set("configuration_endpoint", value.NewMap("address", sdk.ToString(e.Address), "port", int(sdk.ToInt32(e.Port))))
	}
	return m, nil
}

func balancerAttributes(ctx context.Context, a *account, name string) (any, error) {
	out, err := elbOf(a).DescribeLoadBalancerAttributes(ctx,
		&elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &name})
	if err != nil {
		return nil, failed("reading load balancer", name, err)
	}
	return shownAttributes(out.LoadBalancerAttributes), nil
}

func balancerHealth(ctx context.Context, a *account, name string) (any, error) {
	has, err := describeELB(ctx, a, name)
	if has == nil || has.HealthCheck == nil || err != nil {
		return value.NewMap(), err
	}
	h := has.HealthCheck
	return value.NewMap("interval", int(sdk.ToInt32(h.Interval)), "target", sdk.ToString(h.Target), "healthy_threshold",
		int(sdk.ToInt32(h.HealthyThreshold)),
		"timeout", int(sdk.ToInt32(h.Timeout)), "unhealthy_threshold", int(sdk.ToInt32(h.UnhealthyThreshold))), nil
}

func instanceHealth(ctx context.Context, a *account, name string) (any, error) {
	out, err := elbOf(a).DescribeInstanceHealth(ctx, &elb.DescribeInstanceHealthInput{LoadBalancerName: &name})
	if code(err, "LoadBalancerNotFound") {
		return value.NewList(), nil
	}
	if err != nil {
		return nil, failed("reading load balancer", name, err)
	}
	all := value.NewList()
	for _, s := range slices.SortedFunc(slices.Values(out.InstanceStates), func(x, y elbtypes.InstanceState) int {
		return strings.Compare(sdk.ToString(x.InstanceId), sdk.ToString(y.InstanceId))
	}) {
		all.Append(value.NewMap("instance_id", sdk.ToString(s.InstanceId), "state", sdk.ToString(s.State),
			"reason_code", sdk.ToString(s.ReasonCode), "description", sdk.ToString(s.Description)))
	}
	return all, nil
}

func roleConfig(ctx context.Context, a *account, name string) (any, error) {
	all, err := roles(ctx, a)
	has, there := all[name]
	if !there || err != nil {
		return false, err
	}
	return value.NewMap("role_name", name, "arn", sdk.ToString(has.Arn), "role_id", sdk.ToString(has.RoleId), "path",
		sdk.ToString(has.Path), "assume_role_policy_document", document(sdk.ToString(has.AssumeRolePolicyDocument))), nil
}

func profileExists(ctx context.Context, a *account, name string) (any, error) {
	all, err := roles(ctx, a)
	for _, r := range all {
		for _, p := range r.InstanceProfileList {
			if sdk.ToString(p.InstanceProfileName) == name {
				return true, err
			}
		}
	}
	return false, err
}

func memberConfig(kind string) func(ctx context.Context, a *account, name string) (any, error) {
	return func(ctx context.Context, a *account, name string) (any, error) {
		all, err := members(ctx, a)
		has, there := all[kind+" "+name]
		if !there || err != nil {
			return false, err
		}
		return value.NewMap(kind+"_name", name, "groups", value.Strings(has.groups...)), nil
	}
}

func keyExists(ctx context.Context, a *account, name string) (any, error) {
	_, err := kmsOf(a).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &name})
	if code(err, "NotFoundException") {
		return value.NewMap("result", false), nil
	}
	return value.NewMap("result", err == nil), failed("reading key", name, err)
}

// record is boto_route53.get_record; None for none.
func (q asked) record() *function.Function {
	return function.Of("name, zone, record_type, fetch_all=False"+reach+
		", split_dns=False, private_zone=False, identifier=None",
		func(ctx context.Context, name, zone, kind string, _ bool, region, key, keyID string, profile any, _, private bool,
			identifier any) (any, error) {
			a, err := q.account(ctx, "route53", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			id, _, err := zoneOf(ctx, a, zone, private)
			if id == "" || err != nil {
				return nil, err
			}
			set, err := record{Type: kind, Identifier: identifier}.find(ctx, a, id, name)
			if set == nil || err != nil {
				return nil, err
			}
			m := recordFields(*set)
			m.Set("name", strings.TrimSuffix(sdk.ToString(set.Name), "."))
			return m, nil
		})
}

// groupsByName is boto_secgroup.convert_to_group_ids.
func (q asked) groupsByName() *function.Function {
	return function.Of("groups, vpc_id=None, vpc_name=None"+reach,
		func(ctx context.Context, groups any, vpcID, vpcName, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "secgroup", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			vpc, err := vpcOf(ctx, a, vpcID, vpcName)
			if err != nil {
				return nil, err
			}
			ids, err := groupIDs(ctx, a, vpc, texts(groups))
			return value.Strings(ids...), err
		})
}

func shownTags(tags []types.Tag) *value.Map {
	m := value.NewMap()
	for _, t := range tags {
		m.Set(sdk.ToString(t.Key), sdk.ToString(t.Value))
	}
	return m
}

// vpcDescription is boto_vpc.describe.
func (q asked) vpcDescription() *function.Function {
	return function.Of("vpc_id=None, vpc_name=None"+reach,
		func(ctx context.Context, id, name, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			all, err := vpcs(ctx, a)
			for _, v := range all {
				if id != "" && sdk.ToString(v.VpcId) == id || id == "" && name != "" && nameOf(v.Tags) == name {
					return value.NewMap("vpc", value.NewMap("id", sdk.ToString(v.VpcId), "cidr_block", sdk.ToString(v.CidrBlock),
						"is_default", sdk.ToBool(v.IsDefault), "state", string(v.State), "tags", shownTags(v.Tags),
						"dhcp_options_id", sdk.ToString(v.DhcpOptionsId), "instance_tenancy", string(v.InstanceTenancy))), err
				}
			}
			return value.NewMap("vpc", nil), err
		})
}

// subnetDescriptions is boto_vpc.describe_subnets.
func (q asked) subnetDescriptions() *function.Function {
	return function.Of("subnet_ids=None, subnet_names=None, vpc_id=None, cidr=None"+reach,
		func(ctx context.Context, ids, names any, vpc, cidr, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			all, err := subnets(ctx, a)
			list, wantIDs, wantNames := value.NewList(), texts(ids), texts(names)
			for _, s := range all {
				if len(wantIDs) > 0 && !slices.Contains(wantIDs, sdk.ToString(s.SubnetId)) || vpc != "" &&
					sdk.ToString(s.VpcId) != vpc ||
					len(wantNames) > 0 && !slices.Contains(wantNames, nameOf(s.Tags)) || cidr != "" &&
					sdk.ToString(s.CidrBlock) != cidr {
					continue
				}
				list.Append(value.NewMap("id", sdk.ToString(s.SubnetId), "availability_zone", sdk.ToString(s.AvailabilityZone),
					"cidr_block", sdk.ToString(s.CidrBlock), "vpc_id", sdk.ToString(s.VpcId), "tags", shownTags(s.Tags)))
			}
			return value.NewMap("subnets", list), err
		})
}

// network is boto_vpc.subnet_exists and route_table_exists.
func (q asked) network(kind string) *function.Function {
	return function.Of(kind+"_id=None, name=None, "+kind+"_name=None"+reach,
		func(ctx context.Context, id, name, other, region, key, keyID string, profile any) (any, error) {
			if name == "" {
				name = other
			}
			if id == "" {
				found, err := q.resourceID(ctx, kind, name, region, key, keyID, profile)
				return value.NewMap("exists", found != nil), err
			}
			a, err := q.account(ctx, "vpc", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			if kind == "subnet" {
				all, err := subnets(ctx, a)
				return value.NewMap("exists",
					slices.ContainsFunc(all, func(s types.Subnet) bool { return sdk.ToString(s.SubnetId) == id })), err
			}
			out, err := ec2Of(a).DescribeRouteTables(ctx,
				&ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("route-table-id", id)}})
			return value.NewMap("exists", err == nil && len(out.RouteTables) > 0), failed("reading route table", id, err)
		})
}
