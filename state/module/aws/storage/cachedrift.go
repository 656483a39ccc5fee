package storage

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// drift plans the changes that AWS can make to a running cluster, and warns of other differences.
func (c *cachePresent) drift(p *cloud.Plan, a *cloud.Account, has *types.CacheCluster, ids []string) {
	in := &elasticache.ModifyCacheClusterInput{CacheClusterId: &c.Name, ApplyImmediately: sdk.Bool(true)}
	var parameters, topic *string
	if has.CacheParameterGroup != nil {
		parameters = has.CacheParameterGroup.CacheParameterGroupName
	}
	if has.NotificationConfiguration != nil {
		topic = has.NotificationConfiguration.TopicArn
	}
	for _, f := range []struct {
		name      string
		has, want string
		to        **string
	}{{"cache_node_type", sdk.ToString(has.CacheNodeType), c.NodeType, &in.CacheNodeType},
		{"cache_parameter_group_name", sdk.ToString(parameters), c.Parameters, &in.CacheParameterGroupName},
		{"notification_topic_arn", sdk.ToString(topic), c.Topic, &in.NotificationTopicArn},
		{"preferred_maintenance_window", sdk.ToString(has.PreferredMaintenanceWindow), c.Window,
			&in.PreferredMaintenanceWindow}} {
		if f.want != "" && p.Compare(f.name, f.has, f.want) {
			*f.to = &f.want
		}
	}
	// A declared version 5.0 includes every version that begins with 5.0 and a dot.
	if old := sdk.ToString(has.EngineVersion); c.Version != "" && old != c.Version &&
		!strings.HasPrefix(old, c.Version+".") {
		p.Differ("engine_version", old, c.Version)
		in.EngineVersion = &c.Version
	}
	if c.Nodes != nil && p.Compare("num_cache_nodes", int(sdk.ToInt32(has.NumCacheNodes)), *c.Nodes) {
		in.NumCacheNodes = cloud.Int32s(c.Nodes)
		for _, n := range has.CacheNodes[min(*c.Nodes, len(has.CacheNodes)):] {
			in.CacheNodeIdsToRemove = append(in.CacheNodeIdsToRemove, sdk.ToString(n.CacheNodeId))
		}
	}
	if has.AutoMinorVersionUpgrade != nil &&
		p.Compare("auto_minor_version_upgrade", *has.AutoMinorVersionUpgrade, c.Upgrade) {
		in.AutoMinorVersionUpgrade = &c.Upgrade
	}
	var now []string
	for _, g := range has.SecurityGroups {
		now = append(now, sdk.ToString(g.SecurityGroupId))
	}
	if len(ids) > 0 && p.Compare("security_group_ids", cloud.Sorted(now), cloud.Sorted(ids)) {
		in.SecurityGroupIds = ids
	}
	c.fixed(p, has)
	if p.New.Len() > 0 {
		p.Then("cache cluster changed", func(ctx context.Context) error {
			if err := available(ctx, a, c.Name); err != nil {
				return err
			}
			_, err := elasticacheOf(a).ModifyCacheCluster(ctx, in)
			return cloud.Failed("changing cache cluster", c.Name, err)
		})
	}
}

// fixed warns of differences that AWS cannot change.
func (c *cachePresent) fixed(p *cloud.Plan, has *types.CacheCluster) {
	for _, f := range []struct{ name, has, want string }{{"engine", sdk.ToString(has.Engine), c.Engine},
		{"preferred_availability_zone", sdk.ToString(has.PreferredAvailabilityZone), c.Zone},
		{"cache_subnet_group_name", sdk.ToString(has.CacheSubnetGroupName), strings.ToLower(c.Subnets)},
		{"replication_group_id", sdk.ToString(has.ReplicationGroupId), c.Replicates}} {
		if f.want != "" && f.has != f.want {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is %q and cannot be changed", f.name, f.has))
		}
	}
	if c.Port == nil {
		return
	}
	endpoint := has.ConfigurationEndpoint
	if endpoint == nil && len(has.CacheNodes) > 0 {
		endpoint = has.CacheNodes[0].Endpoint
	}
	if endpoint != nil && sdk.ToInt32(endpoint.Port) != *cloud.Int32s(c.Port) {
		p.Warnings = append(p.Warnings, fmt.Sprintf("port is %d and cannot be changed", sdk.ToInt32(endpoint.Port)))
	}
}
