package storage

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// S3BucketTable returns the state functions of boto_s3_bucket.
func S3BucketTable(c *cloud.Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &bucketPresent{Common: cloud.Common{Cloud: c}} },
		"absent":  func() module.Resource { return &bucketAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

func s3Of(a *cloud.Account) *s3.Client {
	return s3.NewFromConfig(a.Client("s3"), func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil // emulators of AWS have one host name for all buckets
		o.APIOptions = append(o.APIOptions, ownedBy(a))
	})
}

// bucketPresent implements boto_s3_bucket.present. An argument that is not given is not managed, and an empty one
// removes what the bucket has.
type bucketPresent struct {
	cloud.Common
	Name          string     `sls:"name"`
	Bucket        string     `sls:"Bucket,required"`
	Location      string     `sls:"LocationConstraint"`
	ACL           *value.Map `sls:"ACL"`
	CORS          []any      `sls:"CORSRules"`
	Lifecycle     []any      `sls:"LifecycleConfiguration"`
	Logging       *value.Map `sls:"Logging"`
	Notifications *value.Map `sls:"NotificationConfiguration"`
	Policy        any        `sls:"Policy"`
	Replication   *value.Map `sls:"Replication"`
	Payment       *value.Map `sls:"RequestPayment"`
	Tagging       *value.Map `sls:"Tagging"`
	Versioning    *value.Map `sls:"Versioning"`
	Website       *value.Map `sls:"Website"`
}

// RunsBeside implements module.Concurrent.
func (*bucketPresent) RunsBeside() {}

// Valid implements module.Validated.
func (b *bucketPresent) Valid() error {
	if !bucketNames().MatchString(b.Bucket) {
		return diag.Amazon.Hint(fmt.Errorf("%q cannot be the name of a bucket", b.Bucket),
			"a name has 3 to 63 lower-case letters, digits, dots and hyphens")
	}
	_, err := b.parts()
	return err
}

// bucketNames matches the names of buckets, also of old ones, which may be longer and have capitals and underscores.
var bucketNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^[A-Za-z0-9._-]{1,255}$")
})

// Check implements module.Resource.
func (b *bucketPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return b.Planned(b.look(ctx))
}

// bucketPart is one configuration of a bucket.
type bucketPart struct {
	field string
	want  any // in the form that get returns
	get   func(ctx context.Context, c *s3.Client) (any, error)
	put   func(ctx context.Context, c *s3.Client) error
	drop  func(ctx context.Context, c *s3.Client) error // nil if put also removes
}

// BucketThere reports whether a bucket exists, and returns its region.
func BucketThere(ctx context.Context, a *cloud.Account, name string) (bool, string, error) {
	out, err := s3Of(a).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	switch {
	case cloud.HasCode(err, "NotFound", "NoSuchBucket"):
		return false, "", nil
	case cloud.HasCode(err, "Forbidden", "AccessDenied"):
		return false, "",
			diag.Credentials.Hint(fmt.Errorf("bucket %s may not be read: it belongs to another account than that of the "+
				"credentials, or a policy forbids it", name),
				"names of buckets are shared by all accounts: choose another one, name another profile, or allow s3:ListBucket")
	case err != nil:
		return false, "", cloud.Failed("reading bucket", name, err)
	}
	return true, sdk.ToString(out.BucketRegion), nil
}

func (b *bucketPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := b.Cloud.Account(ctx, "s3", b.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	there, region, err := BucketThere(ctx, a, b.Bucket)
	if err != nil {
		return nil, err
	}
	parts, err := b.parts()
	if err != nil {
		return nil, err
	}
	if !there {
		b.create(p, a)
	} else if want := b.region(a); b.Location != "" && region != "" && region != want {
		p.Warnings = append(p.Warnings, "LocationConstraint is "+region+" and cannot be changed")
	}
	client := s3Of(a)
	for _, part := range parts {
		if err := part.look(ctx, p, client, b.Bucket); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (b *bucketPresent) region(a *cloud.Account) string {
	switch b.Location {
	case "":
		return a.Config.Region
	case "EU":
		return "eu-west-1"
	}
	return b.Location
}

func (b *bucketPresent) create(p *cloud.Plan, a *cloud.Account) {
	p.Create(value.NewMap("bucket", b.Bucket, "region", b.region(a)))
	p.Then("bucket made", func(ctx context.Context) error {
		in := &s3.CreateBucketInput{Bucket: &b.Bucket}
		if r := b.region(a); r != "us-east-1" {
			where := types.BucketLocationConstraint(r)
			in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: where}
		}
		if cloud.Text(b.ACL, "ACL") != "private" && b.ACL.Len() > 0 {
			in.ObjectOwnership = types.ObjectOwnershipObjectWriter // otherwise a new bucket refuses ACLs
		}
		err := cloud.WaitFor(ctx, "bucket "+b.Bucket+", which was deleted, can be made", cloud.Soon,
			func(ctx context.Context) (bool, error) {
				_, err := s3Of(a).CreateBucket(ctx, in)
				if cloud.HasCode(err, "BucketAlreadyOwnedByYou") {
					return true, nil
				}
				if cloud.HasCode(err, "OperationAborted") {
					return false, nil // AWS refuses the name of a bucket that was deleted a moment ago
				}
				return err == nil, cloud.Failed("making bucket", b.Bucket, err)
			})
		if err != nil {
			return err
		}
		return cloud.WaitFor(ctx, "bucket "+b.Bucket+" is seen", cloud.Soon, func(ctx context.Context) (bool, error) {
			there, _, err := BucketThere(ctx, a, b.Bucket)
			return there, err
		})
	})
}

// bucketAbsent implements boto_s3_bucket.absent.
type bucketAbsent struct {
	cloud.Common
	Name   string `sls:"name"`
	Bucket string `sls:"Bucket,required"`
	Force  bool   `sls:"Force"`
}

// Check implements module.Resource.
func (b *bucketAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := b.Cloud.Account(ctx, "s3", b.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	there, _, err := BucketThere(ctx, a, b.Bucket)
	if !there || err != nil {
		return b.Planned(p, err)
	}
	client := s3Of(a)
	first, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &b.Bucket, MaxKeys: sdk.Int32(1)})
	if err != nil {
		return module.Diff{}, cloud.Failed("listing bucket", b.Bucket, err)
	}
	full := len(first.Versions)+len(first.DeleteMarkers) > 0
	if full && !b.Force {
		return module.Diff{},
			diag.Resource.Hint(
				fmt.Errorf("bucket %s holds objects", b.Bucket), "give Force: True to delete them with the bucket")
	}
	id, err := bornBucket(ctx, client, b.Bucket)
	if err != nil {
		return module.Diff{}, err
	}
	p.Remove(id, value.NewMap("bucket", b.Bucket, "holds_objects", full))
	if full {
		p.Then("objects deleted", func(ctx context.Context) error { return emptyBucket(ctx, client, b.Bucket) })
	}
	p.Then("bucket deleted", func(ctx context.Context) error {
		_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b.Bucket})
		return cloud.Failed("deleting bucket", b.Bucket, err)
	})
	return b.Planned(p, nil)
}

// emptyBucket deletes all versions of all objects of a bucket.
func emptyBucket(ctx context.Context, client *s3.Client, bucket string) error {
	for {
		page, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
		if err != nil {
			return cloud.Failed("listing bucket", bucket, err)
		}
		var all []types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(all) == 0 {
			return nil
		}
		out, err := client.DeleteObjects(ctx,
			&s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: all, Quiet: sdk.Bool(true)}})
		if err != nil {
			return cloud.Failed("deleting the objects of bucket", bucket, err)
		}
		if len(out.Errors) > 0 {
			return fmt.Errorf("deleting the object %s of bucket %s: %s", sdk.ToString(out.Errors[0].Key), bucket,
				sdk.ToString(out.Errors[0].Message))
		}
	}
}
