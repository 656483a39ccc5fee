package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ElasticacheTable returns the state functions of boto_elasticache.
func ElasticacheTable(c *cloud.Cloud) module.Table {
	cluster := func() module.Resource { return &cachePresent{Common: cloud.Common{Cloud: c}, Upgrade: true} }
	gone := func(kind string) func() module.Resource {
		return func() module.Resource { return &cacheAbsent{Common: cloud.Common{Cloud: c}, kind: kind, Wait: true} }
	}
	replicas := func() module.Resource { return &replicationPresent{Common: cloud.Common{Cloud: c}} }
	return module.Table{
		"present": cluster, "cache_cluster_present": cluster,
		"absent": gone("cache cluster"), "cache_cluster_absent": gone("cache cluster"),
		"subnet_group_present":      func() module.Resource { return &cacheSubnets{Common: cloud.Common{Cloud: c}} },
		"subnet_group_absent":       gone("cache subnet group"),
		"creategroup":               replicas,
		"replication_group_present": replicas, "replication_group_absent": gone("replication group"),
	}
}

func elasticacheOf(a *cloud.Account) *elasticache.Client {
	return elasticache.NewFromConfig(a.Client("elasticache"))
}

// cachePresent implements boto_elasticache.present: a cache cluster.
type cachePresent struct {
	cloud.Common
	Name       string   `sls:"name"`
	Engine     string   `sls:"engine"`
	NodeType   string   `sls:"cache_node_type"`
	Nodes      *int     `sls:"num_cache_nodes"`
	Zone       string   `sls:"preferred_availability_zone"`
	Port       *int     `sls:"port"`
	Parameters string   `sls:"cache_parameter_group_name"`
	GroupNames []string `sls:"cache_security_group_names"`
	Replicates string   `sls:"replication_group_id"`
	Upgrade    bool     `sls:"auto_minor_version_upgrade"`
	Groups     []string `sls:"security_group_ids"`
	Subnets    string   `sls:"cache_subnet_group_name"`
	Version    string   `sls:"engine_version"`
	Topic      string   `sls:"notification_topic_arn"`
	Window     string   `sls:"preferred_maintenance_window"`
	Wait       any      `sls:"wait"`
}

// RunsBeside implements module.Concurrent.
func (*cachePresent) RunsBeside() {}

// Valid implements module.Validated.
func (c *cachePresent) Valid() error {
	if c.Nodes != nil && *c.Nodes < 1 {
		return diag.Amazon.Hint(fmt.Errorf("num_cache_nodes is %d", *c.Nodes),
			"a cluster has at least one node; boto_elasticache.absent deletes it")
	}
	return nil
}

// Check implements module.Resource.
func (c *cachePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return c.Planned(c.look(ctx))
}

// DescribeCache returns the cache cluster with a name, or nil if there is none.
func DescribeCache(ctx context.Context, a *cloud.Account, name string) (*types.CacheCluster, error) {
	out, err := elasticacheOf(a).DescribeCacheClusters(ctx, &elasticache.DescribeCacheClustersInput{CacheClusterId: &name,
		ShowCacheNodeInfo: sdk.Bool(true)})
	if cloud.HasCode(err, "CacheClusterNotFound") || err == nil && len(out.CacheClusters) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading cache cluster", name, err)
	}
	return &out.CacheClusters[0], nil
}

// DescribeCacheSubnets returns the cache subnet group with a name, or nil if there is none.
func DescribeCacheSubnets(ctx context.Context, a *cloud.Account, name string) (*types.CacheSubnetGroup, error) {
	out, err := elasticacheOf(a).DescribeCacheSubnetGroups(ctx,
		&elasticache.DescribeCacheSubnetGroupsInput{CacheSubnetGroupName: &name})
	if cloud.HasCode(err, "CacheSubnetGroupNotFoundFault", "CacheSubnetGroupNotFound") || err == nil &&
		len(out.CacheSubnetGroups) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading cache subnet group", name, err)
	}
	return &out.CacheSubnetGroups[0], nil
}

// groupIDs returns the IDs of the security groups of the cluster. Groups that are given by name are those of the VPC of
// its subnets.
func (c *cachePresent) groupIDs(ctx context.Context, a *cloud.Account) ([]string, error) {
	if len(c.GroupNames) == 0 {
		return c.Groups, nil
	}
	vpc := ""
	if c.Subnets != "" {
		group, err := DescribeCacheSubnets(ctx, a, c.Subnets)
		switch {
		case err != nil:
			return nil, err
		case group != nil:
			vpc = sdk.ToString(group.VpcId)
		case a.Expects("cache subnet group", c.Subnets):
			return []string{cloud.Later}, nil
		default:
			return nil, cloud.Missing("cache subnet group", c.Subnets, "boto_elasticache.subnet_group_present")
		}
	}
	vpc, err := network.VPCOf(ctx, a, vpc, "")
	if err != nil {
		return nil, err
	}
	ids, err := network.GroupIDs(ctx, a, vpc, c.GroupNames)
	return slices.Concat(c.Groups, ids), err
}

func (c *cachePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := c.Cloud.Account(ctx, "elasticache", c.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	has, err := DescribeCache(ctx, a, c.Name)
	if err != nil {
		return nil, err
	}
	ids, err := c.groupIDs(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case has == nil:
		c.create(p, a)
		return p, nil
	case strings.HasPrefix(sdk.ToString(has.CacheClusterStatus), "delet"):
		return nil, diag.Resource.Hint(fmt.Errorf("cache cluster %s is being deleted", c.Name),
			"run it again when it is gone")
	}
	c.drift(p, a, has, ids)
	return p, nil
}

func (c *cachePresent) create(p *cloud.Plan, a *cloud.Account) {
	a.Expect("cache cluster", c.Name)
	fields := value.NewMap("cache_cluster", c.Name)
	for _, f := range []struct {
		name string
		v    string
	}{{"engine", c.Engine}, {"engine_version", c.Version}, {"cache_node_type", c.NodeType},
		{"cache_subnet_group_name", c.Subnets},
		{"cache_parameter_group_name", c.Parameters}, {"replication_group_id", c.Replicates},
		{"notification_topic_arn", c.Topic},
		{"preferred_maintenance_window", c.Window}, {"preferred_availability_zone", c.Zone}} {
		cloud.Put(fields, f.name, &f.v)
	}
	if c.Nodes != nil {
		fields.Set("num_cache_nodes", *c.Nodes)
	}
	if names := slices.Concat(c.Groups, c.GroupNames); len(names) > 0 {
		fields.Set("security_groups", cloud.Sorted(names))
	}
	p.Create(fields)
	p.Then("cache cluster made", func(ctx context.Context) error {
		ids, err := c.groupIDs(ctx, a)
		if err != nil {
			return err
		}
		_, err = elasticacheOf(a).CreateCacheCluster(ctx, &elasticache.CreateCacheClusterInput{CacheClusterId: &c.Name,
			Engine: cloud.Optional(c.Engine), EngineVersion: cloud.Optional(c.Version),
			CacheNodeType: cloud.Optional(c.NodeType),
			NumCacheNodes: cloud.Int32s(c.Nodes), PreferredAvailabilityZone: cloud.Optional(c.Zone), Port: cloud.Int32s(c.Port),
			CacheParameterGroupName: cloud.Optional(c.Parameters), ReplicationGroupId: cloud.Optional(c.Replicates),
			AutoMinorVersionUpgrade: &c.Upgrade, SecurityGroupIds: ids, CacheSubnetGroupName: cloud.Optional(c.Subnets),
			NotificationTopicArn: cloud.Optional(c.Topic), PreferredMaintenanceWindow: cloud.Optional(c.Window)})
		if err != nil || !value.Truth(c.Wait) {
			return cloud.Failed("making cache cluster", c.Name, err)
		}
		return available(ctx, a, c.Name)
	})
}

// available waits until a cache cluster can be used and changed.
func available(ctx context.Context, a *cloud.Account, name string) error {
	return cloud.WaitFor(ctx, "cache cluster "+name+" is available", longestCache, func(ctx context.Context) (bool,
		error) {
		now, err := DescribeCache(ctx, a, name)
		return now != nil && sdk.ToString(now.CacheClusterStatus) == "available", err
	})
}

// longestCache is how long to wait at most for a cache cluster.
const longestCache = 30 * time.Minute
