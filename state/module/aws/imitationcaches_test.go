package aws_test

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"
)

// caches imitates ElastiCache. A cluster or replication group can be changed and deleted only while it is available,
// and its creation, its changes and its deletion take some reads.
type caches struct {
	clusters map[string]*cacheCluster
	groups   map[string]*replicationGroup
	subnets  map[string]*types.CacheSubnetGroup
	lag      int
}

type cacheCluster struct {
	types.CacheCluster
	changes lag
}

type replicationGroup struct {
	types.ReplicationGroup
	primary string
	changes lag
}

func newCaches(reads int) *caches {
	return &caches{clusters: map[string]*cacheCluster{}, groups: map[string]*replicationGroup{},
		subnets: map[string]*types.CacheSubnetGroup{}, lag: reads}
}

// settled ends the changes of clusters and groups that are over.
func (s *caches) settled() {
	for name, c := range s.clusters {
		if !c.changes.over() {
			continue
		}
		if *c.CacheClusterStatus == "deleting" {
			delete(s.clusters, name)
		}
		c.CacheClusterStatus = sdk.String("available")
	}
	for name, g := range s.groups {
		if !g.changes.over() {
			continue
		}
		if *g.Status == "deleting" {
			delete(s.groups, name)
		}
		g.Status = sdk.String("available")
	}
}

// cluster finds a cluster that can be changed, and begins the change.
func (s *caches) cluster(name *string, status string) (*cacheCluster, error) {
	c := s.clusters[*name]
	switch {
	case c == nil:
		return nil, fault("CacheClusterNotFound")
	case *c.CacheClusterStatus != "available":
		s.settled()
		return nil, fault("InvalidCacheClusterState")
	}
	c.CacheClusterStatus, c.changes = &status, lag{s.lag}
	return c, nil
}

// group finds a replication group that can be changed, and begins the change.
func (s *caches) group(name *string, status string) (*replicationGroup, error) {
	g := s.groups[*name]
	switch {
	case g == nil:
		return nil, fault("ReplicationGroupNotFoundFault")
	case *g.Status != "available":
		s.settled()
		return nil, fault("InvalidReplicationGroupState")
	}
	g.Status, g.changes = &status, lag{s.lag}
	return g, nil
}

func (s *caches) answer(in any) (any, error) {
	switch in := in.(type) {
	case *elasticache.DescribeCacheClustersInput:
		return s.describe(in)
	case *elasticache.CreateCacheClusterInput:
		return s.create(in)
	case *elasticache.ModifyCacheClusterInput:
		return s.modify(in)
	case *elasticache.DeleteCacheClusterInput:
		for _, g := range s.groups {
			if g.primary == *in.CacheClusterId {
				return nil, fault("InvalidCacheClusterState")
			}
		}
		_, err := s.cluster(in.CacheClusterId, "deleting")
		return &elasticache.DeleteCacheClusterOutput{}, err
	case *elasticache.DescribeReplicationGroupsInput:
		s.settled()
		g := s.groups[*in.ReplicationGroupId]
		if g == nil {
			return nil, fault("ReplicationGroupNotFoundFault")
		}
		return &elasticache.DescribeReplicationGroupsOutput{ReplicationGroups: []types.ReplicationGroup{
			g.ReplicationGroup}}, nil
	case *elasticache.CreateReplicationGroupInput:
		if s.groups[*in.ReplicationGroupId] != nil {
			return nil, fault("ReplicationGroupAlreadyExists")
		}
		c := s.clusters[*in.PrimaryClusterId]
		if c == nil || *c.CacheClusterStatus != "available" {
			return nil, fault("InvalidCacheClusterState")
		}
		s.groups[*in.ReplicationGroupId] = &replicationGroup{primary: *in.PrimaryClusterId,
			ReplicationGroup: types.ReplicationGroup{
				Description: in.ReplicationGroupDescription, Status: sdk.String("creating")}, changes: lag{s.lag}}
		return &elasticache.CreateReplicationGroupOutput{}, nil
	case *elasticache.ModifyReplicationGroupInput:
		g, err := s.group(in.ReplicationGroupId, "modifying")
		if err == nil {
			g.Description = in.ReplicationGroupDescription
		}
		return &elasticache.ModifyReplicationGroupOutput{}, err
	case *elasticache.DeleteReplicationGroupInput:
		_, err := s.group(in.ReplicationGroupId, "deleting")
		return &elasticache.DeleteReplicationGroupOutput{}, err
	}
	return s.answerSubnets(in)
}

func (s *caches) describe(in *elasticache.DescribeCacheClustersInput) (any, error) {
	s.settled()
	var list []types.CacheCluster
	for _, c := range sortedBy(s.clusters) {
		if in.CacheClusterId != nil && *c.CacheClusterId != *in.CacheClusterId {
			continue
		}
		one := c.CacheCluster
		if !sdk.ToBool(in.ShowCacheNodeInfo) {
			one.CacheNodes = nil
		}
		list = append(list, one)
	}
	if in.CacheClusterId != nil && len(list) == 0 {
		return nil, fault("CacheClusterNotFound")
	}
	shown, next := page(list, in.Marker)
	return &elasticache.DescribeCacheClustersOutput{CacheClusters: shown, Marker: next}, nil
}

func (s *caches) create(in *elasticache.CreateCacheClusterInput) (any, error) {
	if s.clusters[*in.CacheClusterId] != nil {
		return nil, fault("CacheClusterAlreadyExists")
	}
	if in.CacheSubnetGroupName != nil && s.subnets[strings.ToLower(*in.CacheSubnetGroupName)] == nil {
		return nil, fault("CacheSubnetGroupNotFoundFault")
	}
	c := &cacheCluster{CacheCluster: types.CacheCluster{CacheClusterId: in.CacheClusterId, Engine: in.Engine,
		EngineVersion: in.EngineVersion, CacheNodeType: in.CacheNodeType, NumCacheNodes: in.NumCacheNodes,
		PreferredAvailabilityZone:  in.PreferredAvailabilityZone,
		PreferredMaintenanceWindow: in.PreferredMaintenanceWindow, AutoMinorVersionUpgrade: in.AutoMinorVersionUpgrade,
		CacheSubnetGroupName: in.CacheSubnetGroupName, CacheClusterStatus: sdk.String("creating")}, changes: lag{s.lag}}
	c.set(in.SecurityGroupIds, in.CacheParameterGroupName, in.NotificationTopicArn)
	c.resize(int(sdk.ToInt32(in.NumCacheNodes)), nil)
	s.clusters[*in.CacheClusterId] = c
	return &elasticache.CreateCacheClusterOutput{}, nil
}

func (s *caches) modify(in *elasticache.ModifyCacheClusterInput) (any, error) {
	if c := s.clusters[*in.CacheClusterId]; c != nil && in.NumCacheNodes != nil &&
		len(c.CacheNodes)-int(*in.NumCacheNodes) > len(in.CacheNodeIdsToRemove) {
		return nil, fault("InvalidParameterCombination")
	}
	c, err := s.cluster(in.CacheClusterId, "modifying")
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ to, from **string }{{&c.CacheNodeType, &in.CacheNodeType},
		{&c.EngineVersion, &in.EngineVersion}, {&c.PreferredMaintenanceWindow, &in.PreferredMaintenanceWindow}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if in.AutoMinorVersionUpgrade != nil {
		c.AutoMinorVersionUpgrade = in.AutoMinorVersionUpgrade
	}
	if in.NumCacheNodes != nil {
		c.NumCacheNodes = in.NumCacheNodes
		c.resize(int(*in.NumCacheNodes), in.CacheNodeIdsToRemove)
	}
	c.set(in.SecurityGroupIds, in.CacheParameterGroupName, in.NotificationTopicArn)
	return &elasticache.ModifyCacheClusterOutput{}, nil
}

// set sets what a request has.
func (c *cacheCluster) set(groups []string, parameters, topic *string) {
	if groups != nil {
		c.SecurityGroups = nil
	}
	for _, id := range groups {
		c.SecurityGroups = append(c.SecurityGroups, types.SecurityGroupMembership{SecurityGroupId: &id})
	}
	if parameters != nil {
		c.CacheParameterGroup = &types.CacheParameterGroupStatus{CacheParameterGroupName: parameters}
	}
	if topic != nil {
		c.NotificationConfiguration = &types.NotificationConfiguration{TopicArn: topic}
	}
}

// resize removes nodes and adds others.
func (c *cacheCluster) resize(nodes int, gone []string) {
	c.CacheNodes = slices.DeleteFunc(slices.Clone(c.CacheNodes), func(n types.CacheNode) bool {
		return slices.Contains(gone, *n.CacheNodeId)
	})
	for n := len(c.CacheNodes); n < nodes; n++ {
		c.CacheNodes = append(c.CacheNodes, types.CacheNode{CacheNodeId: sdk.String(fmt.Sprintf("%04d", n+1)),
			Endpoint: &types.Endpoint{Port: sdk.Int32(6379)}})
	}
}

// answerSubnets answers requests for cache subnet groups, whose names are in lower case.
func (s *caches) answerSubnets(in any) (any, error) {
	set := func(name *string, ids []string, description *string) error {
		g := s.subnets[strings.ToLower(*name)]
		if g == nil {
			return fault("CacheSubnetGroupNotFoundFault")
		}
		g.Subnets = nil
		for _, id := range ids {
			g.Subnets = append(g.Subnets, types.Subnet{SubnetIdentifier: &id})
		}
		if description != nil {
			g.CacheSubnetGroupDescription = description
		}
		return nil
	}
	switch in := in.(type) {
	case *elasticache.DescribeCacheSubnetGroupsInput:
		g := s.subnets[strings.ToLower(*in.CacheSubnetGroupName)]
		if g == nil {
			return nil, fault("CacheSubnetGroupNotFoundFault")
		}
		return &elasticache.DescribeCacheSubnetGroupsOutput{CacheSubnetGroups: []types.CacheSubnetGroup{*g}}, nil
	case *elasticache.CreateCacheSubnetGroupInput:
		if s.subnets[strings.ToLower(*in.CacheSubnetGroupName)] != nil {
			return nil, fault("CacheSubnetGroupAlreadyExists")
		}
		s.subnets[strings.ToLower(*in.CacheSubnetGroupName)] = &types.CacheSubnetGroup{}
		return &elasticache.CreateCacheSubnetGroupOutput{}, set(in.CacheSubnetGroupName, in.SubnetIds,
			in.CacheSubnetGroupDescription)
	case *elasticache.ModifyCacheSubnetGroupInput:
		return &elasticache.ModifyCacheSubnetGroupOutput{}, set(in.CacheSubnetGroupName, in.SubnetIds,
			in.CacheSubnetGroupDescription)
	case *elasticache.DeleteCacheSubnetGroupInput:
		s.settled()
		for _, c := range s.clusters {
			if strings.EqualFold(sdk.ToString(c.CacheSubnetGroupName), *in.CacheSubnetGroupName) {
				return nil, fault("CacheSubnetGroupInUse")
			}
		}
		delete(s.subnets, strings.ToLower(*in.CacheSubnetGroupName))
		return &elasticache.DeleteCacheSubnetGroupOutput{}, nil
	}
	return nil, nil
}
