package storage

import (
	"context"
	"errors"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// replicationPresent implements boto_elasticache.creategroup: a replication group with a cluster as its primary.
type replicationPresent struct {
	cloud.Common
	Name        string `sls:"name"`
	Primary     string `sls:"primary_cluster_id,required"`
	Description string `sls:"replication_group_description,required"`
	Wait        any    `sls:"wait"`
}

// RunsBeside implements module.Concurrent.
func (*replicationPresent) RunsBeside() {}

// Check implements module.Resource.
func (r *replicationPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return r.Planned(r.look(ctx))
}

// DescribeReplicas returns the replication group with a name, or nil if there is none.
func DescribeReplicas(ctx context.Context, a *cloud.Account, name string) (*types.ReplicationGroup, error) {
	out, err := elasticacheOf(a).DescribeReplicationGroups(ctx,
		&elasticache.DescribeReplicationGroupsInput{ReplicationGroupId: &name})
	if cloud.HasCode(err, "ReplicationGroupNotFoundFault") || err == nil && len(out.ReplicationGroups) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading replication group", name, err)
	}
	return &out.ReplicationGroups[0], nil
}

func (r *replicationPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := r.Cloud.Account(ctx, "elasticache", r.Arguments)
	if err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), elasticacheOf(a)
	has, err := DescribeReplicas(ctx, a, r.Name)
	switch {
	case err != nil:
		return nil, err
	case has == nil:
		primary, err := DescribeCache(ctx, a, r.Primary)
		if err != nil {
			return nil, err
		}
		if primary == nil && !a.Expects("cache cluster", r.Primary) {
			return nil, cloud.Missing("cache cluster", r.Primary, "boto_elasticache.present")
		}
		p.Create(value.NewMap("replication_group", r.Name, "primary_cluster_id", r.Primary, "replication_group_description",
			r.Description))
		p.Then("replication group made", func(ctx context.Context) error {
			if primary, err := DescribeCache(ctx, a, r.Primary); primary == nil || err != nil {
				return errors.Join(err, cloud.Missing("cache cluster", r.Primary, "boto_elasticache.present"))
			}
			if err := available(ctx, a, r.Primary); err != nil {
				return err
			}
			_, err := client.CreateReplicationGroup(ctx, &elasticache.CreateReplicationGroupInput{ReplicationGroupId: &r.Name,
				PrimaryClusterId: &r.Primary, ReplicationGroupDescription: &r.Description})
			if err != nil || !value.Truth(r.Wait) {
				return cloud.Failed("making replication group", r.Name, err)
			}
			return r.available(ctx, a)
		})
	case p.Compare("replication_group_description", sdk.ToString(has.Description), r.Description):
		p.Then("description set", func(ctx context.Context) error {
			if err := r.available(ctx, a); err != nil {
				return err
			}
			_, err := client.ModifyReplicationGroup(ctx, &elasticache.ModifyReplicationGroupInput{ReplicationGroupId: &r.Name,
				ReplicationGroupDescription: &r.Description})
			return cloud.Failed("changing replication group", r.Name, err)
		})
	}
	return p, nil
}

// available waits until the group can be used and changed.
func (r *replicationPresent) available(ctx context.Context, a *cloud.Account) error {
	return cloud.WaitFor(ctx, "replication group "+r.Name+" is available", longestCache,
		func(ctx context.Context) (bool, error) {
			now, err := DescribeReplicas(ctx, a, r.Name)
			return now != nil && sdk.ToString(now.Status) == "available", err
		})
}
