package aws_test

import (
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// dynamoTables imitates DynamoDB, which refuses requests while a table is being created, changed or deleted.
type dynamoTables struct {
	all map[string]*dynamoTable
	lag int
}

type dynamoTable struct {
	types.TableDescription
	busy     lag
	deleting bool
}

func newDynamoTables(reads int) *dynamoTables {
	return &dynamoTables{all: map[string]*dynamoTable{}, lag: reads}
}

func (s *dynamoTables) answer(in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.DescribeTableInput:
		t := s.all[*in.TableName]
		if t == nil {
			return nil, fault("ResourceNotFoundException")
		}
		d := t.TableDescription
		switch over := t.busy.over(); {
		case over && t.deleting:
			delete(s.all, *in.TableName)
			return nil, fault("ResourceNotFoundException")
		case over:
			d.TableStatus = types.TableStatusActive
		case t.deleting:
			d.TableStatus = types.TableStatusDeleting
		default:
			d.TableStatus = types.TableStatusUpdating
		}
		return &dynamodb.DescribeTableOutput{Table: &d}, nil
	case *dynamodb.CreateTableInput:
		return s.create(in)
	case *dynamodb.UpdateTableInput:
		t := s.all[*in.TableName]
		if t == nil || t.deleting || t.busy.reads > 0 {
			return nil, fault("ResourceInUseException")
		}
		t.busy = lag{s.lag}
		return &dynamodb.UpdateTableOutput{}, t.update(in)
	case *dynamodb.DeleteTableInput:
		t := s.all[*in.TableName]
		if t == nil || t.deleting || t.busy.reads > 0 {
			return nil, fault("ResourceInUseException")
		}
		t.deleting, t.busy = true, lag{s.lag}
		return &dynamodb.DeleteTableOutput{}, nil
	}
	return nil, nil
}

func (s *dynamoTables) create(in *dynamodb.CreateTableInput) (any, error) {
	if s.all[*in.TableName] != nil {
		return nil, fault("ResourceInUseException")
	}
	t := &dynamoTable{TableDescription: types.TableDescription{TableName: in.TableName, KeySchema: in.KeySchema,
		AttributeDefinitions:  in.AttributeDefinitions,
		ProvisionedThroughput: units(in.ProvisionedThroughput),
		BillingModeSummary:    &types.BillingModeSummary{BillingMode: in.BillingMode}}, busy: lag{s.lag}}
	keys := in.KeySchema
	for _, i := range in.LocalSecondaryIndexes {
		keys = append(keys, i.KeySchema...)
		t.LocalSecondaryIndexes = append(t.LocalSecondaryIndexes, types.LocalSecondaryIndexDescription{IndexName: i.IndexName,
			KeySchema: i.KeySchema})
	}
	for _, i := range in.GlobalSecondaryIndexes {
		keys = append(keys, i.KeySchema...)
		t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes,
			types.GlobalSecondaryIndexDescription{IndexName: i.IndexName,
				KeySchema: i.KeySchema, IndexStatus: types.IndexStatusActive,
				ProvisionedThroughput: units(i.ProvisionedThroughput)})
	}
	if !t.defines(keys) || slices.ContainsFunc(in.AttributeDefinitions, func(d types.AttributeDefinition) bool {
		return !slices.ContainsFunc(keys, func(k types.KeySchemaElement) bool { return *k.AttributeName == *d.AttributeName })
	}) {
		return nil, fault("ValidationException")
	}
	s.all[*in.TableName] = t
	return &dynamodb.CreateTableOutput{}, nil
}

// defines reports whether each key has a type.
func (t *dynamoTable) defines(keys []types.KeySchemaElement) bool {
	return !slices.ContainsFunc(keys, func(k types.KeySchemaElement) bool {
		return !slices.ContainsFunc(t.AttributeDefinitions, func(d types.AttributeDefinition) bool {
			return *d.AttributeName == *k.AttributeName && d.AttributeType != ""
		})
	})
}

// update makes one change, since DynamoDB accepts only one in a request.
func (t *dynamoTable) update(in *dynamodb.UpdateTableInput) error {
	changes := len(in.GlobalSecondaryIndexUpdates)
	if in.ProvisionedThroughput != nil {
		changes++
		if t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest &&
			in.BillingMode != types.BillingModeProvisioned {
			return fault("ValidationException")
		}
		now := units(in.ProvisionedThroughput)
		if same(t.ProvisionedThroughput, now) {
			return fault("ValidationException")
		}
		t.ProvisionedThroughput, t.BillingModeSummary = now,
			&types.BillingModeSummary{BillingMode: types.BillingModeProvisioned}
	}
	if changes != 1 {
		return fault("LimitExceededException")
	}
	indexes := slices.Clone(t.GlobalSecondaryIndexes)
	for _, u := range in.GlobalSecondaryIndexUpdates {
		if u.Create != nil {
			for _, d := range in.AttributeDefinitions {
				if !t.defines([]types.KeySchemaElement{{AttributeName: d.AttributeName}}) {
					t.AttributeDefinitions = append(slices.Clone(t.AttributeDefinitions), d)
				}
			}
			if !t.defines(u.Create.KeySchema) {
				return fault("ValidationException")
			}
			indexes = append(indexes, types.GlobalSecondaryIndexDescription{IndexName: u.Create.IndexName,
				KeySchema:   u.Create.KeySchema,
				IndexStatus: types.IndexStatusActive, ProvisionedThroughput: units(u.Create.ProvisionedThroughput)})
			continue
		}
		i := slices.IndexFunc(indexes, func(x types.GlobalSecondaryIndexDescription) bool {
			return *x.IndexName == *u.Update.IndexName
		})
		if i < 0 || same(indexes[i].ProvisionedThroughput, units(u.Update.ProvisionedThroughput)) {
			return fault("ValidationException")
		}
		indexes[i].ProvisionedThroughput = units(u.Update.ProvisionedThroughput)
	}
	t.GlobalSecondaryIndexes = indexes
	return nil
}

func units(p *types.ProvisionedThroughput) *types.ProvisionedThroughputDescription {
	if p == nil {
		return &types.ProvisionedThroughputDescription{ReadCapacityUnits: sdk.Int64(0), WriteCapacityUnits: sdk.Int64(0)}
	}
	return &types.ProvisionedThroughputDescription{ReadCapacityUnits: p.ReadCapacityUnits,
		WriteCapacityUnits: p.WriteCapacityUnits}
}

func same(a, b *types.ProvisionedThroughputDescription) bool {
	return *a.ReadCapacityUnits == *b.ReadCapacityUnits && *a.WriteCapacityUnits == *b.WriteCapacityUnits
}
