package storage

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

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
	there, id, err := c.exists(ctx, a)
	if there && err == nil {
		p.Remove(id, value.NewMap(strings.ReplaceAll(c.kind, " ", "_"), c.Name))
		p.Then(c.kind+" deleted", func(ctx context.Context) error {
			err := cloud.WaitFor(ctx, c.kind+" "+c.Name+" can be deleted", longestCache, func(ctx context.Context) (bool,
				error) {
				if busy, err := c.busy(ctx, a); busy || err != nil {
					return false, err
				}
				err := c.remove(ctx, elasticacheOf(a))
				if again, other := c.later(ctx, a, err); again || other != nil {
					return false, other
				}
				return err == nil, cloud.Failed("deleting "+c.kind, c.Name, err)
			})
			if err != nil || !c.Wait {
				return err
			}
			return cloud.WaitFor(ctx, c.kind+" "+c.Name+" is being deleted", longestCache, func(ctx context.Context) (bool,
				error) {
				there, _, err := c.exists(ctx, a)
				return !there, err
			})
		})
	}
	return c.Planned(p, err)
}

// exists reports whether the resource exists, and returns its ID. As in Salt, a resource that is being deleted does not
// count.
func (c *cacheAbsent) exists(ctx context.Context, a *cloud.Account) (there bool, id string, err error) {
	switch c.kind {
	case "cache cluster":
		has, err := DescribeCache(ctx, a, c.Name)
		if has == nil || err != nil {
			return false, "", err
		}
		return sdk.ToString(has.CacheClusterStatus) != "deleting", cloud.Born(has.ARN, has.CacheClusterCreateTime), nil
	case "replication group":
		has, err := DescribeReplicas(ctx, a, c.Name)
		if has == nil || err != nil {
			return false, "", err
		}
		return sdk.ToString(has.Status) != "deleting", cloud.Born(has.ARN, has.ReplicationGroupCreateTime), nil
	}
	return c.subnets(ctx, a)
}

// subnets reports whether the subnet group exists, and returns its ARN with its subnets: it has no other ID.
func (c *cacheAbsent) subnets(ctx context.Context, a *cloud.Account) (there bool, id string, err error) {
	has, err := DescribeCacheSubnets(ctx, a, c.Name)
	if has == nil || err != nil {
		return false, "", err
	}
	id = sdk.ToString(has.ARN)
	for _, one := range has.Subnets {
		id += " " + sdk.ToString(one.SubnetIdentifier)
	}
	return true, id, nil
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

// busy reports whether AWS is still making or changing a cluster or replication group, and so does not delete it yet.
func (c *cacheAbsent) busy(ctx context.Context, a *cloud.Account) (bool, error) {
	status := ""
	switch c.kind {
	case "cache cluster":
		has, err := DescribeCache(ctx, a, c.Name)
		if has == nil || err != nil {
			return false, err
		}
		status = sdk.ToString(has.CacheClusterStatus)
	case "replication group":
		has, err := DescribeReplicas(ctx, a, c.Name)
		if has == nil || err != nil {
			return false, err
		}
		status = sdk.ToString(has.Status)
	}
	return slices.Contains([]string{"creating", "modifying", "snapshotting", "rebooting cluster nodes"}, status), nil
}

// later reports whether AWS refused to delete a subnet group for now: all clusters in it are being deleted.
func (c *cacheAbsent) later(ctx context.Context, a *cloud.Account, why error) (bool, error) {
	if !cloud.HasCode(why, "CacheSubnetGroupInUse") {
		return false, nil
	}
	all, err := cloud.Pages(func(next *string) ([]types.CacheCluster, *string, error) {
		page, err := elasticacheOf(a).DescribeCacheClusters(ctx, &elasticache.DescribeCacheClustersInput{Marker: next})
		if err != nil {
			return nil, nil, cloud.Failed("listing the cache clusters of", a.Config.Region, err)
		}
		return page.CacheClusters, page.Marker, nil
	})
	return !slices.ContainsFunc(all, func(one types.CacheCluster) bool {
		return strings.EqualFold(sdk.ToString(one.CacheSubnetGroupName), c.Name) &&
			sdk.ToString(one.CacheClusterStatus) != "deleting"
	}), err
}
