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
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cacheSubnets implements boto_elasticache.subnet_group_present.
type cacheSubnets struct {
	cloud.Common
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
	return s.Planned(s.look(ctx))
}

func (s *cacheSubnets) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "elasticache", s.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	has, err := DescribeCacheSubnets(ctx, a, s.Name)
	if err != nil {
		return nil, err
	}
	want, err := network.SubnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.Expect("cache subnet group", s.Name)
		p.Create(value.NewMap("subnet_group", s.Name, "subnets", cloud.Sorted(want), "description", s.Description))
		p.Then("cache subnet group made", func(ctx context.Context) error { return s.create(ctx, a) })
		return p, nil
	}
	var now []string
	for _, n := range has.Subnets {
		now = append(now, sdk.ToString(n.SubnetIdentifier))
	}
	one := p.Compare("subnets", cloud.Sorted(now), cloud.Sorted(want))
	two := s.Description != "" && p.Compare("description", sdk.ToString(has.CacheSubnetGroupDescription), s.Description)
	if one || two {
		p.Then("cache subnet group changed", func(ctx context.Context) error {
			ids, err := network.SubnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
			if err != nil {
				return err
			}
			_, err = elasticacheOf(a).ModifyCacheSubnetGroup(ctx,
				&elasticache.ModifyCacheSubnetGroupInput{CacheSubnetGroupName: &s.Name,
					SubnetIds: ids, CacheSubnetGroupDescription: cloud.Optional(s.Description)})
			return cloud.Failed("changing cache subnet group", s.Name, err)
		})
	}
	return p, nil
}

func (s *cacheSubnets) create(ctx context.Context, a *cloud.Account) error {
	ids, err := network.SubnetIDs(ctx, a, s.SubnetIDs, s.SubnetNames)
	if err != nil {
		return err
	}
	in := &elasticache.CreateCacheSubnetGroupInput{CacheSubnetGroupName: &s.Name, SubnetIds: ids,
		CacheSubnetGroupDescription: &s.Description}
	for key, v := range s.Tags.All() {
		in.Tags = append(in.Tags, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
	}
	_, err = elasticacheOf(a).CreateCacheSubnetGroup(ctx, in)
	return cloud.Failed("making cache subnet group", s.Name, err)
}
