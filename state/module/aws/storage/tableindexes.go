package storage

import (
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keySchema returns the key of a table or an index. ranged is "" if there is no range key.
func keySchema(hash, ranged string) []types.KeySchemaElement {
	all := []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}}
	if ranged != "" {
		all = append(all, types.KeySchemaElement{AttributeName: &ranged, KeyType: types.KeyTypeRange})
	}
	return all
}

// tableIndex is a declared index.
type tableIndex struct {
	name, hash, hashType, ranged, rangeType string
	read, write                             *int64
	includes                                []string
	keysOnly                                bool
}

// indexFields returns the fields of an index.
func indexFields() cloud.Fields {
	return cloud.Fields{"name": cloud.Word, "hash_key": cloud.Word, "hash_key_data_type": cloud.Word,
		"range_key": cloud.Word, "range_key_data_type": cloud.Word, "includes": cloud.Anything, "keys_only": cloud.Flag,
		"read_capacity_units": cloud.Whole, "write_capacity_units": cloud.Whole}
}

// tableIndexes returns declared indexes. Each is a mapping of any key to a list of the fields of the index.
func tableIndexes(given []any) (all []tableIndex, err error) {
	for _, item := range given {
		for _, v := range cloud.MapOf(item).All() {
			if err := indexFields().Check("the index "+value.Repr(item), v); err != nil {
				return nil, err
			}
			m := cloud.MapOf(v)
			one := tableIndex{name: cloud.Text(m, "name"), hash: cloud.Text(m, "hash_key"),
				hashType: cloud.Text(m, "hash_key_data_type"), ranged: cloud.Text(m, "range_key"),
				rangeType: cloud.Text(m, "range_key_data_type"), includes: cloud.Texts(m.Value("includes")),
				keysOnly: value.Truth(m.Value("keys_only"))}
			if one.name == "" || one.hash == "" {
				return nil, diag.Amazon.Hint(fmt.Errorf("the index %s lacks its name or hash_key", value.Repr(item)),
					"write - index: [name: N, hash_key: K, hash_key_data_type: S]")
			}
			for field, to := range map[string]**int64{"read_capacity_units": &one.read, "write_capacity_units": &one.write} {
				if n, ok := cloud.Number(m, field); ok {
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

// attributes returns the types of the attributes that are keys of the table or of indexes.
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

// indexes plans the global indexes: it makes new ones one after the other, and changes the throughput of those that
// exist. An index that is not declared is an error, as in Salt, since deleting it would lose its data.
func (t *tablePresent) indexes(p *cloud.Plan, a *cloud.Account, has *types.TableDescription) error {
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
			return diag.Resource.Hint(fmt.Errorf("table %s has the global index %s, which is not declared", t.Name, name),
				"declare it, or delete it by hand")
		}
	}
	for _, w := range want {
		field := "global_index " + w.name
		i := slices.IndexFunc(has.GlobalSecondaryIndexes, func(h types.GlobalSecondaryIndexDescription) bool {
			return sdk.ToString(h.IndexName) == w.name
		})
		if i < 0 {
			p.Differ(field, nil, value.NewMap("hash_key", w.hash, "range_key", w.ranged))
			t.change(p, a, "index "+w.name+" made",
				&dynamodb.UpdateTableInput{AttributeDefinitions: t.attributes([]tableIndex{w}),
					GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: w.create()}}})
			continue
		}
		now := has.GlobalSecondaryIndexes[i].ProvisionedThroughput
		if w.throughput() == nil || now == nil {
			continue
		}
		if p.Compare(field, shownUnits(now.ReadCapacityUnits, now.WriteCapacityUnits), shownUnits(w.read, w.write)) {
			t.change(p, a, "throughput of index "+w.name+" set", &dynamodb.UpdateTableInput{
				GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
					IndexName: &w.name, ProvisionedThroughput: w.throughput()}}}})
		}
	}
	return nil
}
