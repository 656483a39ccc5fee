package storage

import (
	"context"
	"reflect"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// ownedBy returns an option of clients with which AWS refuses requests for a bucket that belongs to another account.
// Names of buckets are shared by all accounts, so that an account which takes a name first could pass its bucket off as
// another one's.
func ownedBy(a *cloud.Account) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("the owner of the bucket", func(ctx context.Context,
			in middleware.InitializeInput,
			next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
			owner := reflect.ValueOf(in.Parameters).Elem().FieldByName("ExpectedBucketOwner")
			if owner.IsValid() {
				number, err := cloud.AccountNumber(ctx, a)
				switch {
				case err == nil:
					owner.Set(reflect.ValueOf(&number))
				case a.Config.BaseEndpoint == nil: // servers that only store objects have no accounts
					return out, m, err
				}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	}
}

// bornBucket returns the time at which a bucket was made, or "" if the credentials may not list buckets.
func bornBucket(ctx context.Context, client *s3.Client, name string) (string, error) {
	in := &s3.ListBucketsInput{Prefix: &name}
	for {
		page, err := client.ListBuckets(ctx, in)
		if cloud.HasCode(err, "AccessDenied") {
			return "", nil
		}
		if err != nil {
			return "", cloud.Failed("reading the age of bucket", name, err)
		}
		for _, one := range page.Buckets {
			if sdk.ToString(one.Name) == name {
				return cloud.Born(&name, one.CreationDate), nil
			}
		}
		if sdk.ToString(page.ContinuationToken) == "" {
			return "", nil
		}
		in.ContinuationToken = page.ContinuationToken
	}
}
