package storage

import (
	"context"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cacheAbsent deletes a cache cluster, a cache subnet group or a replication group.
type cacheAbsent struct {
	cloud.Common
	kind string
	Name string     `sls:"name"`
	Wait bool       `sls:"wait"`
	Tags *value.Map `sls:"tags"`
}

// Check implements module.Resource.
func (c *cacheAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := c.Cloud.Account(ctx, "elasticache", c.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	there, err := c.exists(ctx, a)
	if there && err == nil {
		p.Remove(value.NewMap(strings.ReplaceAll(c.kind, " ", "_"), c.Name))
		p.Then(c.kind+" deleted", func(ctx context.Context) error {
			if err := c.remove(ctx, elasticacheOf(a)); err != nil {
				return cloud.Failed("deleting "+c.kind, c.Name, err)
			}
			if !c.Wait {
				return nil
			}
			return cloud.WaitFor(ctx, c.kind+" "+c.Name+" is being deleted", 30*time.Minute, func(ctx context.Context) (bool,
				error) {
				there, err := c.exists(ctx, a)
				return !there, err
			})
		})
	}
	return c.Planned(p, err)
}

// exists reports whether the resource exists. As in Salt, a resource that is being deleted does not count.
func (c *cacheAbsent) exists(ctx context.Context, a *cloud.Account) (bool, error) {
	switch c.kind {
	case "cache cluster":
		has, err := DescribeCache(ctx, a, c.Name)
		return has != nil && sdk.ToString(has.CacheClusterStatus) != "deleting", err
	case "replication group":
		has, err := DescribeReplicas(ctx, a, c.Name)
		return has != nil && sdk.ToString(has.Status) != "deleting", err
	}
	has, err := DescribeCacheSubnets(ctx, a, c.Name)
	return has != nil, err
}

func (c *cacheAbsent) remove(ctx context.Context, client *elasticache.Client) (err error) {
	switch c.kind {
	case "cache cluster":
		_, err = client.DeleteCacheCluster(ctx, &elasticache.DeleteCacheClusterInput{CacheClusterId: &c.Name})
	case "replication group":
		_, err = client.DeleteReplicationGroup(ctx, &elasticache.DeleteReplicationGroupInput{ReplicationGroupId: &c.Name})
	default:
		_, err = client.DeleteCacheSubnetGroup(ctx, &elasticache.DeleteCacheSubnetGroupInput{CacheSubnetGroupName: &c.Name})
	}
	return err
}
