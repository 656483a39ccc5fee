package aws

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
	"github.com/corpus-agent/corpus-agent/state/value"
)

func dynamodbTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &tablePresent{common: common{cloud: c}, AlarmsPillar: "boto_dynamodb_alarms",
				BackupPillar: "boto_dynamodb_backup_configs"}
		},
		"absent": func() module.Resource { return &tableAbsent{common: common{cloud: c}} },
	}
}

func dynamodbOf(a *account) *dynamodb.Client { return dynamodb.NewFromConfig(a.client("dynamodb")) }

// tablePresent is boto_dynamodb.present: a table with its throughput, indexes and alarms.
type tablePresent struct {
	common
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
		return diag.WithHint(errors.New("hash_key or hash_key_data_type is missing"),
			"give the key of the table, and S, N or B")
	}
	if (t.Read == nil) != (t.Write == nil) {
		return errors.New("of read_capacity_units and write_capacity_units one is missing")
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
	return t.check(t.look(ctx))
}

// describeTable reads a table; nil for none.
func describeTable(ctx context.Context, a *account, name string) (*types.TableDescription, error) {
	out, err := dynamodbOf(a).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if code(err, "ResourceNotFoundException") {
		return nil, nil
	}
	if err != nil {
		return nil, failed("reading table", name, err)
	}
	return out.Table, nil
}

func (t *tablePresent) look(ctx context.Context) (*plan, error) {
	a, err := t.cloud.account(ctx, "dynamodb", t.Account)
	if err != nil {
		return nil, err
	}
	if t.TableName != "" {
		t.Name = t.TableName
	}
	if len(module.Items(t.cloud.setting(t.BackupPillar))) > 0 {
		return nil,
			diag.WithHint(fmt.Errorf("the pillar %s declares backups with AWS Data Pipeline, which AWS closed", t.BackupPillar),
				"back up tables with AWS Backup, and remove this pillar")
	}
	p := newPlan()
	has, err := describeTable(ctx, a, t.Name)
	switch {
	case err != nil:
		return nil, err
	case has == nil:
		err = t.create(p, a)
	case has.TableStatus == types.TableStatusDeleting:
		return nil, diag.WithHint(fmt.Errorf("table %s is being deleted", t.Name), "run it again when it is gone")
	default:
		err = t.drift(p, a, has)
	}
	if err != nil {
		return nil, err
	}
	return p, alarmsOf(ctx, p, a, t.alarms(t.Alarms), t.alarms(t.cloud.setting(t.AlarmsPillar)), t.Name, "TableName", nil)
}

// alarms are alarms of the table, with thresholds that are shares of its throughput worked out.
func (t *tablePresent) alarms(given any) any {
	m := mapOf(given)
	if m == nil {
		return nil
	}
	all := value.Copy(m).(*value.Map)
	for _, v := range all.All() {
		attributes := mapOf(mapOf(v).Value("attributes"))
		share, err := value.ToFloat(attributes.Value("threshold_percent"))
		units := map[string]*int{"ConsumedWriteCapacityUnits": t.Write, "ConsumedReadCapacityUnits": t.Read}[text(attributes,
			"metric")]
		if attributes == nil || err != nil || units == nil || attributes.Has("threshold") {
			continue
		}
		period, _ := number(attributes, "period")
		attributes.Delete("threshold_percent")
		attributes.Set("threshold", math.Ceil(float64(*units)*share)*float64(period)) // of a second, and so of a period
	}
	return all
}

// keySchema is the key of a table or an index.
func keySchema(hash, ranged string) []types.KeySchemaElement {
	all := []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}}
	if ranged != "" {
		all = append(all, types.KeySchemaElement{AttributeName: &ranged, KeyType: types.KeyTypeRange})
	}
	return all
}

// tableIndex is an index as declared.
type tableIndex struct {
	name, hash, hashType, ranged, rangeType string
	read, write                             *int64
	includes                                []string
	keysOnly                                bool
}

// tableIndexes reads indexes: mappings of any key to a list of their fields.
func tableIndexes(given []any) (all []tableIndex, err error) {
	for _, item := range given {
		for _, v := range mapOf(item).All() {
			m := mapOf(v)
			one := tableIndex{name: text(m, "name"), hash: text(m, "hash_key"), hashType: text(m, "hash_key_data_type"),
				ranged: text(m, "range_key"), rangeType: text(m, "range_key_data_type"), includes: texts(m.Value("includes")),
				keysOnly: value.Truth(m.Value("keys_only"))}
			if one.name == "" || one.hash == "" {
				return nil, diag.WithHint(fmt.Errorf("the index %s lacks its name or hash_key", value.Repr(item)),
					"write - index: [name: N, hash_key: K, hash_key_data_type: S]")
			}
			for field, to := range map[string]**int64{"read_capacity_units": &one.read, "write_capacity_units": &one.write} {
				if n, ok := number(m, field); ok {
					units := int64(n)
					*to = &units
				}
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func (i tableIndex) projection() *types.Projection {
	switch {
	case i.keysOnly:
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	case len(i.includes) > 0:
		return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: i.includes}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeAll}
}

func (i tableIndex) throughput() *types.ProvisionedThroughput {
	if i.read == nil || i.write == nil {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: i.read, WriteCapacityUnits: i.write}
}

func (i tableIndex) create() *types.CreateGlobalSecondaryIndexAction {
	return &types.CreateGlobalSecondaryIndexAction{IndexName: &i.name, KeySchema: keySchema(i.hash, i.ranged),
		Projection: i.projection(), ProvisionedThroughput: i.throughput()}
}

// attributes are the types of all keys.
func (t *tablePresent) attributes(indexes []tableIndex) (all []types.AttributeDefinition) {
	add := func(name, kind string) {
		if name == "" ||
			slices.ContainsFunc(all, func(d types.AttributeDefinition) bool { return *d.AttributeName == name }) {
			return
		}
		all = append(all, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeType(kind)})
	}
	add(t.Hash, t.HashType)
	add(t.Range, t.RangeType)
	for _, i := range indexes {
		add(i.hash, i.hashType)
		add(i.ranged, i.rangeType)
	}
	return all
}

func (t *tablePresent) create(p *plan, a *account) error {
	local, err := tableIndexes(t.Local)
	if err != nil {
		return err
	}
	global, err := tableIndexes(t.Global)
	if err != nil {
		return err
	}
	fields := value.NewMap("table", t.Name, "hash_key", t.Hash, "hash_key_data_type", t.HashType)
	put(fields, "range_key", &t.Range)
	put(fields, "range_key_data_type", &t.RangeType)
	if t.Read != nil {
		fields.Set("read_capacity_units", *t.Read)
		fields.Set("write_capacity_units", *t.Write)
	}
	for name, list := range map[string][]any{"local_indexes": t.Local, "global_indexes": t.Global} {
		if len(list) > 0 {
			fields.Set(name, value.NewList(list...))
		}
	}
	p.create(fields)
	p.then("table made", func(ctx context.Context) error {
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
			return failed("making table", t.Name, err)
		}
		return t.active(ctx, a)
	})
	return nil
}

func (t *tablePresent) throughput() *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: sdk.Int64(int64(*t.Read)),
		WriteCapacityUnits: sdk.Int64(int64(*t.Write))}
}

// active waits until the table and its indexes take requests: AWS takes one change at a time.
func (t *tablePresent) active(ctx context.Context, a *account) error {
	return waitFor(ctx, "table "+t.Name+" is active", 30*time.Minute, func(ctx context.Context) (bool, error) {
		now, err := describeTable(ctx, a, t.Name)
		if now == nil || err != nil {
			return false, err
		}
		busy := slices.ContainsFunc(now.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
			return i.IndexStatus != types.IndexStatusActive && i.IndexStatus != ""
		})
		return now.TableStatus == types.TableStatusActive && !busy, nil
	})
}

// change plans one change of a table.
func (t *tablePresent) change(p *plan, a *account, what string, in *dynamodb.UpdateTableInput) {
	p.then(what, func(ctx context.Context) error {
		if err := t.active(ctx, a); err != nil {
			return err
		}
		in.TableName = &t.Name
		if _, err := dynamodbOf(a).UpdateTable(ctx, in); err != nil {
			return failed("changing table", t.Name, err)
		}
		return t.active(ctx, a)
	})
}

func (t *tablePresent) drift(p *plan, a *account, has *types.TableDescription) error {
	t.fixed(p, has)
	if t.Read != nil {
		read, write := 0, 0
		if has.ProvisionedThroughput != nil {
			read, write = int(sdk.ToInt64(has.ProvisionedThroughput.ReadCapacityUnits)),
				int(sdk.ToInt64(has.ProvisionedThroughput.WriteCapacityUnits))
		}
		one, two := p.compare("read_capacity_units", read, *t.Read), p.compare("write_capacity_units", write, *t.Write)
		if one || two {
			in := &dynamodb.UpdateTableInput{ProvisionedThroughput: t.throughput()}
			if has.BillingModeSummary != nil && has.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
				in.BillingMode = types.BillingModeProvisioned
			}
			t.change(p, a, "throughput set", in)
		}
	}
	return t.indexes(p, a, has)
}

// fixed warns of what a table keeps as it was made.
func (t *tablePresent) fixed(p *plan, has *types.TableDescription) {
	kinds := map[string]string{}
	for _, d := range has.AttributeDefinitions {
		kinds[sdk.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	var hash, ranged string
	for _, k := range has.KeySchema {
		if k.KeyType == types.KeyTypeHash {
			hash = sdk.ToString(k.AttributeName)
		} else {
			ranged = sdk.ToString(k.AttributeName)
		}
	}
	for _, f := range []struct{ field, has, want string }{{"hash_key", hash, t.Hash}, {"range_key", ranged, t.Range},
		{"hash_key_data_type", kinds[hash], t.HashType}, {"range_key_data_type", kinds[ranged], t.RangeType}} {
		if f.has != f.want {
			p.warnings = append(p.warnings, fmt.Sprintf("%s is %q and cannot be changed", f.field, f.has))
		}
	}
	local, _ := tableIndexes(t.Local)
	var old, want []string
	for _, i := range has.LocalSecondaryIndexes {
		old = append(old, sdk.ToString(i.IndexName))
	}
	for _, i := range local {
		want = append(want, i.name)
	}
	if t.Local != nil && !value.Equal(sorted(old), sorted(want)) {
		p.warnings = append(p.warnings, "local_indexes are "+value.Repr(sorted(old))+" and cannot be changed")
	}
}

// indexes plans the global indexes: new ones are made one after the other, and those that are there change their
// throughput. One that is not declared is an error, as in Salt, since its data would be lost.
func (t *tablePresent) indexes(p *plan, a *account, has *types.TableDescription) error {
	if t.Global == nil {
		return nil
	}
	want, err := tableIndexes(t.Global)
	if err != nil {
		return err
	}
	for _, i := range has.GlobalSecondaryIndexes {
		name := sdk.ToString(i.IndexName)
		if !slices.ContainsFunc(want, func(w tableIndex) bool { return w.name == name }) {
			return diag.WithHint(fmt.Errorf("table %s has the global index %s, which is not declared", t.Name, name),
				"declare it, or delete it by hand")
		}
	}
	for _, w := range want {
		field := "global_index " + w.name
		i := slices.IndexFunc(has.GlobalSecondaryIndexes, func(h types.GlobalSecondaryIndexDescription) bool {
			return sdk.ToString(h.IndexName) == w.name
		})
		if i < 0 {
			p.differ(field, nil, value.NewMap("hash_key", w.hash, "range_key", w.ranged))
			t.change(p, a, "index "+w.name+" made",
				&dynamodb.UpdateTableInput{AttributeDefinitions: t.attributes([]tableIndex{w}),
					GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: w.create()}}})
			continue
		}
		now := has.GlobalSecondaryIndexes[i].ProvisionedThroughput
		if w.throughput() == nil || now == nil {
			continue
		}
		if p.compare(field, shownUnits(now.ReadCapacityUnits, now.WriteCapacityUnits), shownUnits(w.read, w.write)) {
			t.change(p, a, "throughput of index "+w.name+" set", &dynamodb.UpdateTableInput{
				GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
					IndexName: &w.name, ProvisionedThroughput: w.throughput()}}}})
		}
	}
	return nil
}

func shownUnits(read, write *int64) *value.Map {
	return value.NewMap("read_capacity_units", int(sdk.ToInt64(read)), "write_capacity_units", int(sdk.ToInt64(write)))
}

// tableAbsent is boto_dynamodb.absent.
type tableAbsent struct {
	common
	Name string `sls:"name"`
}

// Check implements module.Resource.
func (t *tableAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := t.cloud.account(ctx, "dynamodb", t.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	has, err := describeTable(ctx, a, t.Name)
	if has != nil && err == nil {
		p.remove(value.NewMap("table", t.Name, "items", int(sdk.ToInt64(has.ItemCount))))
		p.then("table deleted", func(ctx context.Context) error {
			_, err := dynamodbOf(a).DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &t.Name})
			if err != nil && !code(err, "ResourceNotFoundException") && has.TableStatus != types.TableStatusDeleting {
				return failed("deleting table", t.Name, err)
			}
			return waitFor(ctx, "table "+t.Name+" is gone", 20*time.Minute, func(ctx context.Context) (bool, error) {
				now, err := describeTable(ctx, a, t.Name)
				return now == nil, err
			})
		})
	}
	return t.check(p, err)
}
