// Package storage has the states boto_s3_bucket, boto_dynamodb and boto_elasticache: buckets, tables and caches.
package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/alarms"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// DynamoDBTable returns the state functions of boto_dynamodb.
func DynamoDBTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &tablePresent{Common: cloud.Common{Cloud: c}, AlarmsPillar: "boto_dynamodb_alarms",
				BackupPillar: "boto_dynamodb_backup_configs"}
		},
		"absent": func() module.Resource { return &tableAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

func dynamodbOf(a *cloud.Account) *dynamodb.Client {
	return dynamodb.NewFromConfig(a.Client("dynamodb"))
}

// tablePresent implements boto_dynamodb.present: a table with its throughput, indexes and alarms.
type tablePresent struct {
	cloud.Common
	Name         string `sls:"name"`
	TableName    string `sls:"table_name"`
	Read         *int   `sls:"read_capacity_units"`
	Write        *int   `sls:"write_capacity_units"`
	Alarms       any    `sls:"alarms"`
	AlarmsPillar string `sls:"alarms_from_pillar"`
	Hash         string `sls:"hash_key"`
	HashType     string `sls:"hash_key_data_type"`
	Range        string `sls:"range_key"`
	RangeType    string `sls:"range_key_data_type"`
	Local        []any  `sls:"local_indexes"`
	Global       []any  `sls:"global_indexes"`
	BackupPillar string `sls:"backup_configs_from_pillars"`
}

// RunsBeside implements module.Concurrent.
func (*tablePresent) RunsBeside() {}

// Valid implements module.Validated.
func (t *tablePresent) Valid() error {
	if t.Hash == "" || t.HashType == "" {
		return diag.Amazon.Hint(errors.New("hash_key or hash_key_data_type is missing"),
			"give the key of the table, and S, N or B")
	}
	for name, v := range map[string]string{"hash_key_data_type": t.HashType, "range_key_data_type": t.RangeType} {
		if err := cloud.OneOf(name, v, types.ScalarAttributeType("").Values()); err != nil {
			return err
		}
	}
	if (t.Read == nil) != (t.Write == nil) {
		return errors.New("read_capacity_units or write_capacity_units is given without the other one")
	}
	for _, indexes := range [][]any{t.Local, t.Global} {
		if _, err := tableIndexes(indexes); err != nil {
			return err
		}
	}
	return nil
}

// Check implements module.Resource.
func (t *tablePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return t.Planned(t.look(ctx))
}

// DescribeTable returns the table with a name, or nil if there is none.
func DescribeTable(ctx context.Context, a *cloud.Account, name string) (*types.TableDescription, error) {
	out, err := dynamodbOf(a).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if cloud.HasCode(err, "ResourceNotFoundException") {
		return nil, nil
	}
	if err != nil {
		return nil, cloud.Failed("reading table", name, err)
	}
	return out.Table, nil
}

func (t *tablePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := t.Cloud.Account(ctx, "dynamodb", t.Arguments)
	if err != nil {
		return nil, err
	}
	if t.TableName != "" {
		t.Name = t.TableName
	}
	if len(module.Items(t.Cloud.Option(t.BackupPillar))) > 0 {
		return nil,
			diag.Amazon.Hint(fmt.Errorf("the pillar %s declares backups with AWS Data Pipeline, which AWS closed",
				t.BackupPillar), "back up tables with AWS Backup, and remove this pillar")
	}
	p := cloud.NewPlan()
	has, err := DescribeTable(ctx, a, t.Name)
	switch {
	case err != nil:
		return nil, err
	case has == nil:
		err = t.create(p, a)
	case has.TableStatus == types.TableStatusDeleting:
		return nil, diag.Resource.Hint(fmt.Errorf("table %s is being deleted", t.Name), "run it again when it is gone")
	default:
		err = t.drift(p, a, has)
	}
	if err != nil {
		return nil, err
	}
	return p, alarms.Of(ctx, p, a, t.alarms(t.Alarms), t.alarms(t.Cloud.Option(t.AlarmsPillar)), t.Name, "TableName",
		nil)
}

// alarms returns alarms of the table in which threshold_percent is replaced by a threshold that is computed from the
// throughput of the table.
func (t *tablePresent) alarms(given any) any {
	m := cloud.MapOf(given)
	if m == nil {
		return nil
	}
	all := value.Copy(m).(*value.Map)
	for _, v := range all.All() {
		attributes := cloud.MapOf(cloud.MapOf(v).Value("attributes"))
		share, err := value.ToFloat(attributes.Value("threshold_percent"))
		consumed := map[string]*int{"ConsumedWriteCapacityUnits": t.Write, "ConsumedReadCapacityUnits": t.Read}
		units := consumed[cloud.Text(attributes, "metric")]
		if attributes == nil || err != nil || units == nil || attributes.Has("threshold") {
			continue
		}
		period, _ := cloud.Number(attributes, "period")
		attributes.Delete("threshold_percent")
		perSecond := math.Ceil(float64(*units) * share)
		attributes.Set("threshold", perSecond*float64(period)) // the metric is a sum over the period
	}
	return all
}

func (t *tablePresent) create(p *cloud.Plan, a *cloud.Account) error {
	local, err := tableIndexes(t.Local)
	if err != nil {
		return err
	}
	global, err := tableIndexes(t.Global)
	if err != nil {
		return err
	}
	fields := value.NewMap("table", t.Name, "hash_key", t.Hash, "hash_key_data_type", t.HashType)
	cloud.Put(fields, "range_key", &t.Range)
	cloud.Put(fields, "range_key_data_type", &t.RangeType)
	if t.Read != nil {
		fields.Set("read_capacity_units", *t.Read)
		fields.Set("write_capacity_units", *t.Write)
	}
	for name, list := range map[string][]any{"local_indexes": t.Local, "global_indexes": t.Global} {
		if len(list) > 0 {
			fields.Set(name, value.NewList(list...))
		}
	}
	p.Create(fields)
	p.Then("table made", func(ctx context.Context) error {
		in := &dynamodb.CreateTableInput{TableName: &t.Name, KeySchema: keySchema(t.Hash, t.Range),
			AttributeDefinitions: t.attributes(slices.Concat(local, global)), BillingMode: types.BillingModePayPerRequest}
		if t.Read != nil {
			in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, t.throughput()
		}
		for _, i := range local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{IndexName: &i.name,
				KeySchema: keySchema(i.hash, i.ranged), Projection: i.projection()})
		}
		for _, i := range global {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: &i.name,
				KeySchema: keySchema(i.hash, i.ranged), Projection: i.projection(), ProvisionedThroughput: i.throughput()})
		}
		if _, err := dynamodbOf(a).CreateTable(ctx, in); err != nil {
			return cloud.Failed("making table", t.Name, err)
		}
		return t.active(ctx, a)
	})
	return nil
}

func (t *tablePresent) throughput() *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: sdk.Int64(int64(*t.Read)),
		WriteCapacityUnits: sdk.Int64(int64(*t.Write))}
}

// active waits until the table and its indexes are active, as AWS takes one change at a time.
func (t *tablePresent) active(ctx context.Context, a *cloud.Account) error {
	return cloud.WaitFor(ctx, "table "+t.Name+" is active", 30*time.Minute, func(ctx context.Context) (bool, error) {
		now, err := DescribeTable(ctx, a, t.Name)
		if now == nil || err != nil {
			return false, err
		}
		busy := slices.ContainsFunc(now.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
			return i.IndexStatus != types.IndexStatusActive && i.IndexStatus != ""
		})
		return now.TableStatus == types.TableStatusActive && !busy, nil
	})
}

// change plans one change of the table, and waits before and after it until the table is active.
func (t *tablePresent) change(p *cloud.Plan, a *cloud.Account, what string, in *dynamodb.UpdateTableInput) {
	p.Then(what, func(ctx context.Context) error {
		if err := t.active(ctx, a); err != nil {
			return err
		}
		in.TableName = &t.Name
		if _, err := dynamodbOf(a).UpdateTable(ctx, in); err != nil {
			return cloud.Failed("changing table", t.Name, err)
		}
		return t.active(ctx, a)
	})
}

// tableAbsent implements boto_dynamodb.absent.
type tableAbsent struct {
	cloud.Common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (t *tableAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := t.Cloud.Account(ctx, "dynamodb", t.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := DescribeTable(ctx, a, t.Name)
	if has != nil && err == nil {
		p.Remove(cloud.Born(has.TableId, has.CreationDateTime), value.NewMap("table", t.Name,
			"items", int(sdk.ToInt64(has.ItemCount))))
		p.Then("table deleted", func(ctx context.Context) error {
			_, err := dynamodbOf(a).DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &t.Name})
			if err != nil && !cloud.HasCode(err, "ResourceNotFoundException") && has.TableStatus != types.TableStatusDeleting {
				return cloud.Failed("deleting table", t.Name, err)
			}
			return cloud.WaitFor(ctx, "table "+t.Name+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
				now, err := DescribeTable(ctx, a, t.Name)
				return now == nil, err
			})
		})
	}
	return t.Planned(p, err)
}
