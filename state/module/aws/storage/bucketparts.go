package storage

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// look plans one configuration of a bucket.
func (part bucketPart) look(ctx context.Context, p *cloud.Plan, client *s3.Client, bucket string) error {
	var has any
	if !p.Made {
		found, err := part.get(ctx, client)
		if err != nil && !cloud.HasCode(err, "NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration", "NoSuchBucketPolicy",
			"NoSuchTagSet", "ReplicationConfigurationNotFoundError", "NoSuchWebsiteConfiguration") {
			return cloud.Failed("reading "+part.field+" of bucket", bucket, err)
		}
		if err == nil {
			has = found
		}
	}
	has, want := comparable(has), comparable(part.want)
	if !mentions(want, "ID") {
		has = without(has, "ID", "Id")
	}
	if cloud.Empty(has) && cloud.Empty(want) || cloud.SamePolicy(has, want) {
		return nil
	}
	p.Differ(part.field, has, want)
	do := part.put
	if cloud.Empty(want) && part.drop != nil {
		do = part.drop
	}
	p.Then(part.field+" set", func(ctx context.Context) error {
		return cloud.Failed("setting "+part.field+" of bucket", bucket, do(ctx, client))
	})
	return nil
}

// comparable returns a configuration in the form in which it is compared. The Prefix of a lifecycle rule becomes a
// Filter with the same meaning.
func comparable(v any) any {
	v = cloud.Filled(v)
	list, ok := v.(*value.List)
	if !ok {
		return v
	}
	for _, item := range list.Items {
		if m := cloud.MapOf(item); m.Has("Prefix") && m.Has("Status") {
			m.Set("Filter", value.NewMap("Prefix", m.Value("Prefix")))
			m.Delete("Prefix")
		}
	}
	return v
}

// mentions reports whether a value contains a key at any depth, without regard to case.
func mentions(v any, key string) bool {
	switch v := v.(type) {
	case *value.Map:
		for k, item := range v.All() {
			if strings.EqualFold(value.Str(k), key) || mentions(item, key) {
				return true
			}
		}
	case *value.List:
		return slices.ContainsFunc(v.Items, func(item any) bool { return mentions(item, key) })
	}
	return false
}

// without deletes keys from a value at any depth, and returns the value. AWS gives IDs to rules that are declared
// without them.
func without(v any, keys ...string) any {
	switch v := v.(type) {
	case *value.Map:
		for _, key := range keys {
			v.Delete(key)
		}
		for _, item := range v.All() {
			without(item, keys...)
		}
	case *value.List:
		for _, item := range v.Items {
			without(item, keys...)
		}
	}
	return v
}

// parts returns the declared configurations.
func (b *bucketPresent) parts() (all []bucketPart, err error) {
	for _, make := range []func() (*bucketPart, error){b.acl, b.cors, b.lifecycle, b.logging, b.notifications, b.policy,
		b.versioning, b.replication, b.payment, b.tagging, b.website} { // versioning comes before replication, which needs it
		part, err := make()
		if err != nil {
			return nil, err
		}
		if part != nil {
			all = append(all, *part)
		}
	}
	return all, nil
}
