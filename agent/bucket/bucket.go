// Package bucket reads pillar data from S3 for the engine, with the client of the stores: the same credentials of the
// host, time limits and retries.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/grains/ec2/account"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
)

// Reader reads buckets, with the options of a store. It is an external.Buckets.
type Reader store.Settings

// mostObjects is the maximum number of objects, each of which is a request.
const mostObjects = 2000

// Objects is part of external.Buckets.
func (r Reader) Objects(ctx context.Context, b external.Bucket, limit int64,
	add func(key string, content []byte) error) error {
	options := store.Settings(r)
	options.Timeout.Name = "s3://" + b.Name
	objects := store.Stack(s3.New(settings(b)), options)
	count := 0
	for info, err := range objects.List(ctx, "") {
		if err != nil {
			return err
		}
		if strings.HasSuffix(info.Key, "/") { // a folder that a console made
			continue
		}
		if count++; count > mostObjects || info.Size > limit {
			return tooMuch(info, count)
		}
		content, err := read(ctx, objects, info.Key, limit)
		if err != nil {
			return err
		}
		limit -= int64(len(content))
		if err := add(info.Key, content); err != nil {
			return err
		}
	}
	return nil
}

func tooMuch(info store.Info, count int) error {
	return diag.External.Hint(fmt.Errorf("%s is object %d, with %d bytes, which is more than is read of a bucket",
		info.Key, count, info.Size), "put the pillar into a bucket of its own, or set prefix to its folder")
}

func read(ctx context.Context, objects store.Store, key string, limit int64) ([]byte, error) {
	body, _, err := objects.Get(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err = errors.Join(err, body.Close()); err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has grown while it was read", key)
	}
	return content, err
}

// settings returns the settings of the client. Keys of the source replace the credentials of the host.
func settings(b external.Bucket) s3.Options {
	o := s3.Options{Bucket: b.Name, Prefix: b.Prefix, Region: b.Region, Endpoint: b.Endpoint, PathStyle: b.PathStyle}
	if b.KeyID == "" {
		return o
	}
	o.Account = func(ctx context.Context, region, profile string) (aws.Config, error) {
		cfg, err := account.Load(ctx, account.Options{Region: region, Profile: profile})
		cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: b.KeyID, SecretAccessKey: b.Key, Source: "ext_pillar"}, nil
		})
		return cfg, err
	}
	return o
}
