package aws

import (
	"context"
	"errors"
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
	"github.com/corpus-agent/corpus-agent/state/value"
)

func elasticacheTable(c *Cloud) module.Table {
	cluster := func() module.Resource { return &cachePresent{common: common{cloud: c}, Upgrade: true} }
	gone := func(kind string) func() module.Resource {
		return func() module.Resource { return &cacheAbsent{common: common{cloud: c}, kind: kind, Wait: true} }
	}
	replicas := func() module.Resource { return &replicationPresent{common: common{cloud: c}} }
	return module.Table{
		"present": cluster, "cache_cluster_present": cluster,
		"absent": gone("cache cluster"), "cache_cluster_absent": gone("cache cluster"),
		"subnet_group_present":      func() module.Resource { return &cacheSubnets{common: common{cloud: c}} },
		"subnet_group_absent":       gone("cache subnet group"),
		"creategroup":               replicas,
		"replication_group_present": replicas, "replication_group_absent": gone("replication group"),
	}
}

func elasticacheOf(a *account) *elasticache.Client {
	return elasticache.NewFromConfig(a.client("elasticache"))
}

// cachePresent is boto_elasticache.present: a cache cluster.
type cachePresent struct {
	common
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

// Check implements module.Resource.
func (c *cachePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return c.check(c.look(ctx))
}

// describeCache reads a cache cluster; nil for none.
func describeCache(ctx context.Context, a *account, name string) (*types.CacheCluster, error) {
	out, err := elasticacheOf(a).DescribeCacheClusters(ctx, &elasticache.DescribeCacheClustersInput{CacheClusterId: &name})
	if code(err, "CacheClusterNotFound") || err == nil && len(out.CacheClusters) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, failed("reading cache cluster", name, err)
	}
	return &out.CacheClusters[0], nil
}

// describeCacheSubnets reads a group of subnets; nil for none.
func describeCacheSubnets(ctx context.Context, a *account, name string) (*types.CacheSubnetGroup, error) {
	out, err := elasticacheOf(a).DescribeCacheSubnetGroups(ctx,
		&elasticache.DescribeCacheSubnetGroupsInput{CacheSubnetGroupName: &name})
	if code(err, "CacheSubnetGroupNotFoundFault", "CacheSubnetGroupNotFound") || err == nil &&
		len(out.CacheSubnetGroups) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, failed("reading cache subnet group", name, err)
	}
	return &out.CacheSubnetGroups[0], nil
}

// groupIDs are the security groups of the cluster, by ID or by their names in the VPC of its subnets.
func (c *cachePresent) groupIDs(ctx context.Context, a *account) ([]string, error) {
	if len(c.GroupNames) == 0 {
		return c.Groups, nil
	}
	vpc := ""
	if c.Subnets != "" {
		group, err := describeCacheSubnets(ctx, a, c.Subnets)
		switch {
		case err != nil:
			return nil, err
		case group != nil:
			vpc = sdk.ToString(group.VpcId)
		case a.expects("cache subnet group", c.Subnets):
			return []string{later}, nil
		default:
			return nil, missing("cache subnet group", c.Subnets, "boto_elasticache.subnet_group_present")
		}
	}
	vpc, err := vpcOf(ctx, a, vpc, "")
	if err != nil {
		return nil, err
	}
	ids, err := groupIDs(ctx, a, vpc, c.GroupNames)
	return slices.Concat(c.Groups, ids), err
}

// optional is a text as the SDK takes it; nil for none.
func optional(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func (c *cachePresent) look(ctx context.Context) (*plan, error) {
	a, err := c.cloud.account(ctx, "elasticache", c.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	has, err := describeCache(ctx, a, c.Name)
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
		return nil, diag.WithHint(fmt.Errorf("cache cluster %s is being deleted", c.Name), "run it again when it is gone")
	}
	return p, c.drift(p, a, has, ids)
}

func (c *cachePresent) create(p *plan, a *account) {
	a.expect("cache cluster", c.Name)
	fields := value.NewMap("cache_cluster", c.Name)
	for _, f := range []struct {
		name string
		v    string
	}{{"engine", c.Engine}, {"engine_version", c.Version}, {"cache_node_type", c.NodeType},
		{"cache_subnet_group_name", c.Subnets},
		{"cache_parameter_group_name", c.Parameters}, {"replication_group_id", c.Replicates},
		{"notification_topic_arn", c.Topic},
		{"preferred_maintenance_window", c.Window}, {"preferred_availability_zone", c.Zone}} {
		put(fields, f.name, &f.v)
	}
	if c.Nodes != nil {
		fields.Set("num_cache_nodes", *c.Nodes)
	}
	if names := slices.Concat(c.Groups, c.GroupNames); len(names) > 0 {
		fields.Set("security_groups", sorted(names))
	}
	p.create(fields)
	p.then("cache cluster made", func(ctx context.Context) error {
		ids, err := c.groupIDs(ctx, a)
		if err != nil {
			return err
		}
		_, err = elasticacheOf(a).CreateCacheCluster(ctx, &elasticache.CreateCacheClusterInput{CacheClusterId: &c.Name,
			Engine: optional(c.Engine), EngineVersion: optional(c.Version), CacheNodeType: optional(c.NodeType),
			NumCacheNodes: int32s(c.Nodes), PreferredAvailabilityZone: optional(c.Zone), Port: int32s(c.Port),
			CacheParameterGroupName: optional(c.Parameters), ReplicationGroupId: optional(c.Replicates),
			AutoMinorVersionUpgrade: &c.Upgrade, SecurityGroupIds: ids, CacheSubnetGroupName: optional(c.Subnets),
			NotificationTopicArn: optional(c.Topic), PreferredMaintenanceWindow: optional(c.Window)})
		if err != nil || !value.Truth(c.Wait) {
			return failed("making cache cluster", c.Name, err)
		}
		return c.available(ctx, a)
	})
}

func (c *cachePresent) available(ctx context.Context, a *account) error {
	return waitFor(ctx, "cache cluster "+c.Name+" is available", 30*time.Minute, func(ctx context.Context) (bool, error) {
		now, err := describeCache(ctx, a, c.Name)
		return now != nil && sdk.ToString(now.CacheClusterStatus) == "available", err
	})
}

// drift plans what AWS changes of a cluster that runs, and warns of the rest.
func (c *cachePresent) drift(p *plan, a *account, has *types.CacheCluster, ids []string) error {
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
		if f.want != "" && p.compare(f.name, f.has, f.want) {
			*f.to = &f.want
		}
	}
	// 5.0 means the newest version that begins so.
	if old := sdk.ToString(has.EngineVersion); c.Version != "" && old != c.Version &&
		!strings.HasPrefix(old, c.Version+".") {
		p.differ("engine_version", old, c.Version)
		in.EngineVersion = &c.Version
	}
	if c.Nodes != nil && p.compare("num_cache_nodes", int(sdk.ToInt32(has.NumCacheNodes)), *c.Nodes) {
		in.NumCacheNodes = int32s(c.Nodes)
		for _, n := range has.CacheNodes[min(*c.Nodes, len(has.CacheNodes)):] {
			in.CacheNodeIdsToRemove = append(in.CacheNodeIdsToRemove, sdk.ToString(n.CacheNodeId))
		}
	}
	if has.AutoMinorVersionUpgrade != nil &&
		p.compare("auto_minor_version_upgrade", *has.AutoMinorVersionUpgrade, c.Upgrade) {
		in.AutoMinorVersionUpgrade = &c.Upgrade
	}
	var now []string
	for _, g := range has.SecurityGroups {
		now = append(now, sdk.ToString(g.SecurityGroupId))
	}
	if len(ids) > 0 && p.compare("security_group_ids", sorted(now), sorted(ids)) {
		in.SecurityGroupIds = ids
	}
	c.fixed(p, has)
	if p.new.Len() > 0 {
		p.then("cache cluster changed", func(ctx context.Context) error {
			if err := c.available(ctx, a); err != nil {
				return err
			}
			_, err := elasticacheOf(a).ModifyCacheCluster(ctx, in)
			return failed("changing cache cluster", c.Name, err)
		})
	}
	return nil
}

// fixed warns of what a cluster keeps as it is made.
func (c *cachePresent) fixed(p *plan, has *types.CacheCluster) {
	for _, f := range []struct{ name, has, want string }{{"engine", sdk.ToString(has.Engine), c.Engine},
		{"preferred_availability_zone", sdk.ToString(has.PreferredAvailabilityZone), c.Zone},
		{"cache_subnet_group_name", sdk.ToString(has.CacheSubnetGroupName), strings.ToLower(c.Subnets)},
		{"replication_group_id", sdk.ToString(has.ReplicationGroupId), c.Replicates}} {
		if f.want != "" && f.has != f.want {
			p.warnings = append(p.warnings, fmt.Sprintf("%s is %q and cannot be changed", f.name, f.has))
		}
	}
	if c.Port == nil {
		return
	}
	endpoint := has.ConfigurationEndpoint
	if endpoint == nil && len(has.CacheNodes) > 0 {
		endpoint = has.CacheNodes[0].Endpoint
	}
	if endpoint != nil && sdk.ToInt32(endpoint.Port) != *int32s(c.Port) {
		p.warnings = append(p.warnings, fmt.Sprintf("port is %d and cannot be changed", sdk.ToInt32(endpoint.Port)))
	}
}

// cacheSubnets is boto_elasticache.subnet_group_present.
type cacheSubnets struct {
	common
	Name        string     `sls:"name"`
	SubnetIDs   []string   `sls:"subnet_ids"`
	SubnetNames []string   `sls:"subnet_names"`
	Description string     `sls:"description"`
	Tags        *value.Map `sls:"tags"`
}

// RunsBeside implements module.Concurrent.
func (*cacheSubnets) RunsBeside() {}

// Valid implements module.Validated.
func (s *cacheSubnets) Valid() error {
	if (len(s.SubnetIDs) == 0) == (len(s.SubnetNames) == 0) {
		return errors.New("one of subnet_ids and subnet_names says which subnets these are")
	}
	return nil
}

// Check implements module.Resource.
func (s *cacheSubnets) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func (s *cacheSubnets) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "elasticache", s.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	has, err := describeCacheSubnets(ctx, a, s.Name)
	if err != nil {
		return nil, err
	}
	want, err := subnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.expect("cache subnet group", s.Name)
		p.create(value.NewMap("subnet_group", s.Name, "subnets", sorted(want), "description", s.Description))
		p.then("cache subnet group made", func(ctx context.Context) error { return s.create(ctx, a) })
		return p, nil
	}
	var now []string
	for _, n := range has.Subnets {
		now = append(now, sdk.ToString(n.SubnetIdentifier))
	}
	one := p.compare("subnets", sorted(now), sorted(want))
	two := s.Description != "" && p.compare("description", sdk.ToString(has.CacheSubnetGroupDescription), s.Description)
	if one || two {
		p.then("cache subnet group changed", func(ctx context.Context) error {
			ids, err := subnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
			if err != nil {
				return err
			}
			_, err = elasticacheOf(a).ModifyCacheSubnetGroup(ctx,
				&elasticache.ModifyCacheSubnetGroupInput{CacheSubnetGroupName: &s.Name,
					SubnetIds: ids, CacheSubnetGroupDescription: optional(s.Description)})
			return failed("changing cache subnet group", s.Name, err)
		})
	}
	return p, nil
}

func (s *cacheSubnets) create(ctx context.Context, a *account) error {
	ids, err := subnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
	if err != nil {
		return err
	}
	in := &elasticache.CreateCacheSubnetGroupInput{CacheSubnetGroupName: &s.Name, SubnetIds: ids,
		CacheSubnetGroupDescription: &s.Description}
	for key, v := range s.Tags.All() {
		in.Tags = append(in.Tags, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	_, err = elasticacheOf(a).CreateCacheSubnetGroup(ctx, in)
	return failed("making cache subnet group", s.Name, err)
}

// replicationPresent is boto_elasticache.creategroup: a group of replicas of a cluster.
type replicationPresent struct {
	common
	Name        string `sls:"name"`
	Primary     string `sls:"primary_cluster_id,required"`
	Description string `sls:"replication_group_description,required"`
	Wait        any    `sls:"wait"`
}

// RunsBeside implements module.Concurrent.
func (*replicationPresent) RunsBeside() {}

// Check implements module.Resource.
func (r *replicationPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.check(r.look(ctx))
}

// describeReplicas reads a replication group; nil for none.
func describeReplicas(ctx context.Context, a *account, name string) (*types.ReplicationGroup, error) {
	out, err := elasticacheOf(a).DescribeReplicationGroups(ctx,
		&elasticache.DescribeReplicationGroupsInput{ReplicationGroupId: &name})
	if code(err, "ReplicationGroupNotFoundFault") || err == nil && len(out.ReplicationGroups) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, failed("reading replication group", name, err)
	}
	return &out.ReplicationGroups[0], nil
}

func (r *replicationPresent) look(ctx context.Context) (*plan, error) {
	a, err := r.cloud.account(ctx, "elasticache", r.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), elasticacheOf(a)
	has, err := describeReplicas(ctx, a, r.Name)
	switch {
	case err != nil:
		return nil, err
	case has == nil:
		p.create(value.NewMap("replication_group", r.Name, "primary_cluster_id", r.Primary, "replication_group_description",
			r.Description))
		p.then("replication group made", func(ctx context.Context) error {
			_, err := client.CreateReplicationGroup(ctx, &elasticache.CreateReplicationGroupInput{ReplicationGroupId: &r.Name,
				PrimaryClusterId: &r.Primary, ReplicationGroupDescription: &r.Description})
			if err != nil || !value.Truth(r.Wait) {
				return failed("making replication group", r.Name, err)
			}
			return waitFor(ctx, "replication group "+r.Name+" is available", 30*time.Minute,
				func(ctx context.Context) (bool, error) {
					now, err := describeReplicas(ctx, a, r.Name)
					return now != nil && sdk.ToString(now.Status) == "available", err
				})
		})
	case p.compare("replication_group_description", sdk.ToString(has.Description), r.Description):
		p.then("description set", func(ctx context.Context) error {
			_, err := client.ModifyReplicationGroup(ctx, &elasticache.ModifyReplicationGroupInput{ReplicationGroupId: &r.Name,
				ReplicationGroupDescription: &r.Description})
			return failed("changing replication group", r.Name, err)
		})
	}
	return p, nil
}

// cacheAbsent deletes a cluster, a group of subnets or a replication group.
type cacheAbsent struct {
	common
	kind string
	Name string     `sls:"name"`
	Wait bool       `sls:"wait"`
	Tags *value.Map `sls:"tags"`
}

// Check implements module.Resource.
func (c *cacheAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := c.cloud.account(ctx, "elasticache", c.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	there, err := c.exists(ctx, a)
	if there && err == nil {
		p.remove(value.NewMap(strings.ReplaceAll(c.kind, " ", "_"), c.Name))
		p.then(c.kind+" deleted", func(ctx context.Context) error {
			if err := c.remove(ctx, elasticacheOf(a)); err != nil {
				return failed("deleting "+c.kind, c.Name, err)
			}
			if !c.Wait {
				return nil
			}
			return waitFor(ctx, c.kind+" "+c.Name+" is being deleted", 30*time.Minute, func(ctx context.Context) (bool, error) {
				there, err := c.exists(ctx, a)
				return !there, err
			})
		})
	}
	return c.check(p, err)
}

// exists reports whether it is there. What is being deleted is gone, as in Salt.
func (c *cacheAbsent) exists(ctx context.Context, a *account) (bool, error) {
	switch c.kind {
	case "cache cluster":
		has, err := describeCache(ctx, a, c.Name)
		return has != nil && sdk.ToString(has.CacheClusterStatus) != "deleting", err
	case "replication group":
		has, err := describeReplicas(ctx, a, c.Name)
		return has != nil && sdk.ToString(has.Status) != "deleting", err
	}
	has, err := describeCacheSubnets(ctx, a, c.Name)
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
