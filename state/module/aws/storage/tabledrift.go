package storage

import (
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (t *tablePresent) drift(p *cloud.Plan, a *cloud.Account, has *types.TableDescription) error {
	t.fixed(p, has)
	if t.Read != nil {
		read, write := 0, 0
		if has.ProvisionedThroughput != nil {
			read, write = int(sdk.ToInt64(has.ProvisionedThroughput.ReadCapacityUnits)),
				int(sdk.ToInt64(has.ProvisionedThroughput.WriteCapacityUnits))
		}
		one, two := p.Compare("read_capacity_units", read, *t.Read), p.Compare("write_capacity_units", write, *t.Write)
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

// fixed warns of differences that AWS cannot change.
func (t *tablePresent) fixed(p *cloud.Plan, has *types.TableDescription) {
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
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is %q and cannot be changed", f.field, f.has))
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
	if t.Local != nil && !value.Equal(cloud.Sorted(old), cloud.Sorted(want)) {
		p.Warnings = append(p.Warnings, "local_indexes are "+value.Repr(cloud.Sorted(old))+" and cannot be changed")
	}
}

func shownUnits(read, write *int64) *value.Map {
	return value.NewMap("read_capacity_units", int(sdk.ToInt64(read)), "write_capacity_units", int(sdk.ToInt64(write)))
}
