package aws

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/balancing"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/storage"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func cacheConfig(ctx context.Context, a *cloud.Account, name string) (any, error) {
	has, err := storage.DescribeCache(ctx, a, name)
	if has == nil || err != nil {
		return value.NewMap(), err
	}
	m := value.NewMap("engine", sdk.ToString(has.Engine), "cache_node_type", sdk.ToString(has.CacheNodeType),
		"num_cache_nodes", int(sdk.ToInt32(has.NumCacheNodes)), "cache_cluster_status", sdk.ToString(has.CacheClusterStatus))
	cloud.Put(m, "engine_version", has.EngineVersion)
	if e := has.ConfigurationEndpoint; e != nil {
		m.Set("configuration_endpoint", value.NewMap("address", sdk.ToString(e.Address), "port", int(sdk.ToInt32(e.Port))))
	}
	return m, nil
}

func balancerAttributes(ctx context.Context, a *cloud.Account, name string) (any, error) {
	out, err := balancing.ELBOf(a).DescribeLoadBalancerAttributes(ctx,
		&elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &name})
	if err != nil {
		return nil, cloud.Failed("reading load balancer", name, err)
	}
	return balancing.ShownAttributes(out.LoadBalancerAttributes), nil
}

func balancerHealth(ctx context.Context, a *cloud.Account, name string) (any, error) {
	has, err := balancing.Describe(ctx, a, name)
	if has == nil || has.HealthCheck == nil || err != nil {
		return value.NewMap(), err
	}
	h := has.HealthCheck
	return value.NewMap("interval", int(sdk.ToInt32(h.Interval)), "target", sdk.ToString(h.Target), "healthy_threshold",
		int(sdk.ToInt32(h.HealthyThreshold)),
		"timeout", int(sdk.ToInt32(h.Timeout)), "unhealthy_threshold", int(sdk.ToInt32(h.UnhealthyThreshold))), nil
}

func instanceHealth(ctx context.Context, a *cloud.Account, name string) (any, error) {
	out, err := balancing.ELBOf(a).DescribeInstanceHealth(ctx, &elb.DescribeInstanceHealthInput{LoadBalancerName: &name})
	if cloud.HasCode(err, "LoadBalancerNotFound") {
		return value.NewList(), nil
	}
	if err != nil {
		return nil, cloud.Failed("reading load balancer", name, err)
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
