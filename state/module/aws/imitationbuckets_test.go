package aws_test

import (
	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// buckets imitates the buckets of S3 and their configurations. A new bucket is not seen at once, takes no ACLs unless
// it is made for them, and blocks ACLs and policies that open it to all. The name of a deleted one is refused for a
// while.
type buckets struct {
	all     map[string]*bucket
	deleted map[string]*lag
	lag     int
}

type bucket struct {
	region   string
	owner    string // the number of the account
	unseen   lag
	acls     bool
	grants   []types.Grant
	versions []types.ObjectVersion
	cors     []types.CORSRule
	rules    []types.LifecycleRule
	logging  *types.LoggingEnabled
	events   types.NotificationConfiguration
	policy   string
	payer    types.Payer
	tags     []types.Tag
	version  types.BucketVersioningStatus
	replicas *types.ReplicationConfiguration
	site     *types.WebsiteConfiguration
}

func newBuckets(reads int) *buckets {
	return &buckets{all: map[string]*bucket{}, deleted: map[string]*lag{}, lag: reads}
}

// one finds a bucket for a request.
func (s *buckets) one(name *string) (*bucket, error) {
	if b := s.all[*name]; b != nil && b.unseen.over() {
		return b, nil
	}
	return nil, fault("NoSuchBucket")
}

func (s *buckets) answer(in any) (any, error) {
	switch in := in.(type) {
	case *s3.HeadBucketInput:
		switch b, err := s.one(in.Bucket); {
		case *in.Bucket == "of-others" || b != nil && b.owner != sdk.ToString(in.ExpectedBucketOwner):
			return nil, fault("Forbidden")
		case err != nil:
			return nil, fault("NotFound")
		default:
			return &s3.HeadBucketOutput{BucketRegion: &b.region}, nil
		}
	case *s3.CreateBucketInput:
		return s.create(in)
	case *s3.ListBucketsInput:
		out := &s3.ListBucketsOutput{}
		for _, name := range sortedKeys(s.all) {
			out.Buckets = append(out.Buckets, types.Bucket{Name: &name})
		}
		return out, nil
	case *s3.DeleteBucketInput:
		b, err := s.one(in.Bucket)
		if err == nil && len(b.versions) > 0 {
			return nil, fault("BucketNotEmpty")
		}
		delete(s.all, *in.Bucket)
		s.deleted[*in.Bucket] = &lag{s.lag}
		return &s3.DeleteBucketOutput{}, err
	case *s3.ListObjectVersionsInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		shown, next := page(b.versions, in.KeyMarker)
		return &s3.ListObjectVersionsOutput{Versions: shown, NextKeyMarker: next, IsTruncated: sdk.Bool(next != nil)}, nil
	case *s3.DeleteObjectsInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		b.versions = b.versions[len(in.Delete.Objects):]
		return &s3.DeleteObjectsOutput{}, nil
	}
	for _, part := range []func(any) (any, error){s.answerReads, s.answerOptionalReads, s.answerAccess, s.answerPuts,
		s.answerReplication, s.answerDeletes} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return nil, nil
}

func (s *buckets) create(in *s3.CreateBucketInput) (any, error) {
	if l := s.deleted[*in.Bucket]; l != nil && !l.over() {
		return nil, fault("OperationAborted")
	}
	if s.all[*in.Bucket] != nil {
		return nil, fault("BucketAlreadyOwnedByYou")
	}
	b := &bucket{region: "us-east-1", owner: "123456789012", unseen: lag{s.lag},
		acls:  in.ObjectOwnership == types.ObjectOwnershipObjectWriter,
		payer: types.PayerBucketOwner}
	if in.CreateBucketConfiguration != nil {
		b.region = string(in.CreateBucketConfiguration.LocationConstraint)
	}
	s.all[*in.Bucket] = b
	return &s3.CreateBucketOutput{}, nil
}
