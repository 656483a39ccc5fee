package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/compute"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/module/aws/scaling"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func asgConfig(ctx context.Context, a *cloud.Account, name string) (any, error) {
	has, err := scaling.Describe(ctx, a, name)
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
	cloud.Put(m, "launch_config_name", has.LaunchConfigurationName)
	if has.LaunchTemplate != nil {
		cloud.Put(m, "launch_config_name", has.LaunchTemplate.LaunchTemplateName)
	}
	return m, nil
}

// instancesOfGroup implements boto_asg.get_instances, which returns an attribute of each instance of a group that has a
// lifecycle state and a health status: by default, that is in service and healthy.
func (q asked) instancesOfGroup() *function.Function {
	return function.Of("name, lifecycle_state='InService', health_status='Healthy', attribute='private_ip_address', "+
		"attributes=None"+reach,
		func(ctx context.Context, name, life, health, attribute string, attributes any, region, key, keyID string,
			profile any) (any, error) {
			a, err := q.account(ctx, "asg", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			group, err := scaling.Describe(ctx, a, name)
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
			list, err := compute.InstancesOf(ctx, a, name, "", network.Filter("instance-id", ids...))
			if err != nil {
				return nil, err
			}
			return attributesOf(list, attribute, cloud.Texts(attributes))
		})
}

// attributesOf returns several attributes of each instance as lists, or one attribute of those that have it.
func attributesOf(list []types.Instance, one string, several []string) (any, error) {
	all := value.NewList()
	for _, i := range list {
		if len(several) == 0 {
			v, err := attributeOf(i, one)
			if err != nil {
				return nil, err
			}
			if v != "" {
				all.Append(v)
			}
			continue
		}
		row := value.NewList()
		for _, name := range several {
			v, err := attributeOf(i, name)
			if err != nil {
				return nil, err
			}
			row.Append(v)
		}
		all.Append(row)
	}
	return all, nil
}

// attributeOf returns an attribute of an instance by its name in Salt.
func attributeOf(i types.Instance, name string) (any, error) {
	if name == "tags" {
		m := value.NewMap()
		for _, t := range i.Tags {
			m.Set(sdk.ToString(t.Key), sdk.ToString(t.Value))
		}
		return m, nil
	}
	texts := map[string]*string{"private_ip_address": i.PrivateIpAddress, "ip_address": i.PublicIpAddress,
		"id": i.InstanceId, "private_dns_name": i.PrivateDnsName, "public_dns_name": i.PublicDnsName,
		"image_id": i.ImageId, "key_name": i.KeyName, "subnet_id": i.SubnetId, "vpc_id": i.VpcId,
		"instance_type": sdk.String(string(i.InstanceType))}
	v, known := texts[name]
	if !known {
		names := append(slices.Sorted(maps.Keys(texts)), "tags")
		return nil, diag.Amazon.Hint(fmt.Errorf("an instance has no attribute %s", name), "%s", cloud.Meant(name, names))
	}
	return sdk.ToString(v), nil
}

func alarmConfig(ctx context.Context, a *cloud.Account, name string) (any, error) {
	out, err := alarms.CloudwatchOf(a).DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
	if err != nil {
		return nil, cloud.Failed("reading alarm", name, err)
	}
	if len(out.MetricAlarms) == 0 {
		return nil, nil
	}
	m := alarms.AlarmFields(out.MetricAlarms[0])
	m.Set("name", name)
	return m, nil
}

// instances implements boto_ec2.exists, find_instances and get_id.
func (q asked) instances(what string) *function.Function {
	signature := map[string]string{"exists": "instance_id=None, name=None, tags=None",
		"find": "instance_id=None, name=None, tags=None", "id": "name=None, tags=None"}[what]
	find := func(ctx context.Context, id, name string, tags *value.Map, region, key, keyID string,
		profile, states, filters any) (any, error) {
		a, err := q.account(ctx, "ec2", region, key, keyID, profile)
		if err != nil {
			return nil, err
		}
		var more []types.Filter
		for k, v := range tags.All() {
			more = append(more, network.Filter("tag:"+value.Str(k), cloud.Texts(v)...))
		}
		for k, v := range cloud.MapOf(filters).All() {
			more = append(more, network.Filter(value.Str(k), cloud.Texts(v)...))
		}
		if name != "" && len(more) > 0 {
			more = append(more, network.ByName(name)...)
		}
		all, err := compute.InstancesOf(ctx, a, name, id, more...)
		ids := value.NewList()
		for _, i := range all {
			if wanted := cloud.Texts(states); len(wanted) == 0 || i.State != nil && slices.Contains(wanted,
				string(i.State.Name)) {
				ids.Append(sdk.ToString(i.InstanceId))
			}
		}
		switch {
		case err != nil || what == "find":
			return ids, err
		case what == "exists":
			return ids.Len() > 0, nil
		case ids.Len() == 0:
			return nil, nil
		}
		one, err := cloud.Only("instance", name, ids.Items, func(id *any) *string { return sdk.String(value.Str(*id)) },
			"give tags or in_states, too")
		if err != nil {
			return nil, err
		}
		return *one, nil
	}
	if what == "id" {
		return function.Of(signature+reach+", in_states=None, filters=None",
			func(ctx context.Context, name string, tags *value.Map, region, key, keyID string,
				profile, states, filters any) (any, error) {
				return find(ctx, "", name, tags, region, key, keyID, profile, states, filters)
			})
	}
	return function.Of(signature+reach+", in_states=None, filters=None",
		func(ctx context.Context, id, name string, tags *value.Map, region, key, keyID string,
			profile, states, filters any) (any, error) {
			return find(ctx, id, name, tags, region, key, keyID, profile, states, filters)
		})
}

// scalingPolicyARN returns the function that finds the ARN of a scaling policy. As in Salt it answers None for a group
// or a policy that does not exist, as before the first run of a tree.
func (q asked) scalingPolicyARN() *function.Function {
	return function.Of("as_group, scaling_policy_name"+reach,
		func(ctx context.Context, group, policy, region, key, keyID string, profile any) (any, error) {
			a, err := q.account(ctx, "asg", region, key, keyID, profile)
			if err != nil {
				return nil, err
			}
			arn, err := alarms.PolicyARN(ctx, a, group, policy)
			if arn == "" {
				return nil, err
			}
			return arn, err
		})
}
