// Package s3 keeps objects in an S3 bucket, through the AWS SDK.
//
// Credentials, region and endpoint come from the usual sources of AWS tools: the AWS_* environment, ~/.aws/config and
// credentials with their profiles, web identity, and the role of the instance through its metadata service. Nothing is
// loaded before the first request. The SDK's own retries are off, since store.Retry decides which requests are safe to
// repeat: a conditional write that the SDK repeats can be refused because its first attempt succeeded.
package s3

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// Options are the location of the objects. Only Bucket is required.
type Options struct {
	Bucket    string
	Prefix    string  // prepended to every key, with a slash; may be empty
	Region    string  // default: from the environment, the profile, or the instance
	Profile   string  // a profile of ~/.aws/config; default: AWS_PROFILE, or the default one
	Endpoint  string  // URL of another server than AWS; default: AWS_ENDPOINT_URL_S3 and similar variables
	PathStyle *bool   // bucket in the path, not in the host name; default: for other servers than AWS
	Account   Account // default: that of a host, on which no user signs in; see account.Load
}

// Store is a store in a bucket.
type Store struct {
	opts Options
	mu   sync.Mutex
	api  *client // nil until the first request
}

// New returns a store. It neither reads files nor connects.
func New(opts Options) *Store { return &Store{opts: opts} }

// name returns the name of an object in messages.
func (s *Store) name(key string) string { return "s3://" + s.opts.Bucket + "/" + s.path(key) }

func (s *Store) path(key string) string {
	if s.opts.Prefix == "" {
		return key
	}
	return s.opts.Prefix + "/" + key
}

// begin starts an operation on an object.
func (s *Store) begin(ctx context.Context, op store.Op, key string) (context.Context, *wire.Call, *client, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, nil, nil, err
	}
	ctx, call := wire.Begin(ctx, op, key, s.name(key))
	api, err := s.client(ctx, call)
	return ctx, call, api, err
}

// Get opens an object from an offset on.
func (s *Store) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return s.GetRange(ctx, key, store.Range{From: from})
}

// GetRange opens a part of an object.
func (s *Store) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	ctx, call, api, err := s.begin(ctx, store.OpGet, key)
	if err != nil {
		return nil, store.Info{}, err
	}
	in := &s3.GetObjectInput{Bucket: &s.opts.Bucket, Key: aws.String(s.path(key)), Range: optional(wire.RangeHeader(part)),
		IfMatch: optional(part.ETag), IfNoneMatch: optional(part.Unless)}
	out, err := api.GetObject(ctx, in)
	if err != nil && call.Status() == http.StatusRequestedRangeNotSatisfiable {
		return s.pastEnd(ctx, call, api, part)
	}
	if err != nil {
		return nil, store.Info{}, api.explain(call, err)
	}
	return call.Open(part, wire.Opened{
		Body:         out.Body,
		ETag:         aws.ToString(out.ETag),
		Modified:     aws.ToTime(out.LastModified),
		Length:       lengthOf(out.ContentLength),
		ContentRange: aws.ToString(out.ContentRange),
	})
}

// pastEnd describes an object for a range past its end.
func (s *Store) pastEnd(ctx context.Context, call *wire.Call,
	api *client, part store.Range) (io.ReadCloser, store.Info, error) {
	out, err := api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.opts.Bucket, Key: aws.String(s.path(call.Key)),
		IfMatch: optional(part.ETag)})
	if err != nil {
		return nil, store.Info{}, api.explain(call, err)
	}
	return call.PastEnd(part, store.Info{
		Key: call.Key, Size: lengthOf(out.ContentLength), ETag: aws.ToString(out.ETag),
		Modified: aws.ToTime(out.LastModified),
	})
}

func lengthOf(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func optional(header string) *string {
	if header == "" {
		return nil
	}
	return &header
}

// Put writes an object, a large one in parts.
func (s *Store) Put(ctx context.Context, key string, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	ctx, call, api, err := s.begin(ctx, store.OpPut, key)
	if err != nil {
		return store.Info{}, err
	}
	return call.Write(ctx, &writing{api: api, call: call, bucket: &s.opts.Bucket, key: aws.String(s.path(key)),
		path: s.path}, r, size,
		cond)
}

// List lists the objects page by page.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return s.list(ctx, prefix, nil)
}

// Folders lists the folders right below a prefix, page by page.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return s.list(ctx, prefix, aws.String("/"))
}

func (s *Store) list(ctx context.Context, prefix string, delimiter *string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
		api, err := s.client(ctx, call)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		call.InOrder(s.pages(ctx, call, api, prefix, delimiter))(yield)
	}
}

// pages yields objects, or folders with a delimiter.
func (s *Store) pages(ctx context.Context, call *wire.Call, api *client, prefix string,
	delimiter *string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		pages := s3.NewListObjectsV2Paginator(api, &s3.ListObjectsV2Input{Bucket: &s.opts.Bucket,
			Prefix: aws.String(s.path(prefix)), Delimiter: delimiter},
			func(o *s3.ListObjectsV2PaginatorOptions) { o.StopOnDuplicateToken = true })
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(store.Info{}, api.explain(call, err))
				return
			}
			for _, info := range s.infos(page, delimiter != nil) {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// infos are the objects of a page, or its folders.
func (s *Store) infos(page *s3.ListObjectsV2Output, folders bool) (infos []store.Info) {
	if folders {
		for _, p := range page.CommonPrefixes {
			infos = append(infos, store.Info{Key: strings.TrimPrefix(aws.ToString(p.Prefix), s.path(""))})
		}
		return infos
	}
	for _, o := range page.Contents {
		infos = append(infos, store.Info{Key: strings.TrimPrefix(aws.ToString(o.Key), s.path("")),
			Size: lengthOf(o.Size), ETag: aws.ToString(o.ETag), Modified: aws.ToTime(o.LastModified)})
	}
	return infos
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, key)
	if err != nil {
		return err
	}
	_, err = api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.opts.Bucket, Key: aws.String(s.path(key))})
	if err == nil {
		return nil
	}
	return call.Gone(api.explain(call, err))
}

// explain converts an error of the SDK.
func (c *client) explain(call *wire.Call, err error) error {
	var unsigned *noCredentials
	if errors.As(err, &unsigned) {
		return call.Credentials(unsigned.err, whence)
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		if wire.Expired(api.ErrorCode()) {
			c.credentials.forget()
		}
		return call.Refused(api.ErrorCode(), api.ErrorMessage())
	}
	if call.Status() >= 300 { // the body is not S3's, but perhaps a proxy's
		return call.Refused("", "")
	}
	return call.Fail(err)
}

const whence = "give credentials by AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, by ~/.aws, or by a " +
	"role of the instance"
