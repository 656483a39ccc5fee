// Package minio keeps objects on a MinIO server, or on another S3 server outside AWS, through MinIO's own client.
//
// In contrast to package s3, it is configured by the host and port of a server and MINIO_ACCESS_KEY, without region or
// profile. As there, the client's own retries are off, since store.Retry decides which requests are safe to repeat.
package minio

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"

	minio "github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// Options are the location of the objects. Host and Bucket are required.
type Options struct {
	Host   string // host:port, or only the host for the scheme's default port
	Bucket string
	Prefix string // prepended to every key, with a slash; may be empty
	Region string // default us-east-1, which MinIO accepts unless it is configured otherwise
	Plain  bool   // HTTP instead of HTTPS

	Transport http.RoundTripper // nil means wire.NewTransport
}

// Store is a store in a bucket.
type Store struct {
	opts Options
	mu   sync.Mutex
	api  *minio.Core // nil until the first request
	keys keys        // the credentials in use
}

// New returns a store. It neither reads files nor connects.
func New(opts Options) *Store { return &Store{opts: opts} }

// name returns the name of an object in messages.
func (s *Store) name(key string) string {
	return "minio://" + s.opts.Host + "/" + s.opts.Bucket + "/" + s.path(key)
}

func (s *Store) path(key string) string {
	if s.opts.Prefix == "" {
		return key
	}
	return s.opts.Prefix + "/" + key
}

// client configures the client for the first request.
func (s *Store) client(call *wire.Call) (*minio.Core, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { call.Hide(s.keys.secret, s.keys.token) }()
	if s.api != nil {
		return s.api, nil
	}
	creds, err := findKeys(s.opts)
	if err != nil {
		return nil, call.Credentials(err, whence)
	}
	region := s.opts.Region
	if region == "" {
		region = "us-east-1" // fetching it would take another request and another permission
	}
	transport := s.opts.Transport
	if transport == nil {
		transport = wire.NewTransport()
	}
	api, err := minio.NewCore(s.opts.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(creds.access, creds.secret, creds.token),
		Secure:     !s.opts.Plain,
		Region:     region,
		Transport:  transport,
		MaxRetries: 1,
	})
	if err != nil {
		return nil, call.Unusable(err, "a store's URL reads minio://host:port/bucket/prefix")
	}
	s.api, s.keys = api, creds
	return api, nil
}

// begin starts an operation on an object.
func (s *Store) begin(ctx context.Context, op store.Op, key string) (context.Context, *wire.Call, *minio.Core, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, nil, nil, err
	}
	ctx, call := wire.Begin(ctx, op, key, s.name(key))
	api, err := s.client(call)
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
	body, info, header, err := api.GetObject(ctx, s.opts.Bucket, s.path(key), getOptions(part))
	if err != nil && call.Status() == http.StatusRequestedRangeNotSatisfiable {
		return s.pastEnd(ctx, call, api, part)
	}
	if err != nil {
		return nil, store.Info{}, explain(call, err)
	}
	return call.Open(part, wire.Opened{
		Body: body, ETag: info.ETag, Modified: info.LastModified, Length: info.Size,
		ContentRange: header.Get("Content-Range"),
	})
}

func getOptions(part store.Range) minio.GetObjectOptions {
	opts := minio.GetObjectOptions{}
	if r := wire.RangeHeader(part); r != "" {
		opts.Set("Range", r)
	}
	if part.ETag != "" {
		_ = opts.SetMatchETag(part.ETag) // it only fails for an empty one
	}
	if part.Unless != "" {
		_ = opts.SetMatchETagExcept(part.Unless) // it only fails for an empty one
	}
	return opts
}

// pastEnd describes an object for a range past its end.
func (s *Store) pastEnd(ctx context.Context, call *wire.Call,
	api *minio.Core, part store.Range) (io.ReadCloser, store.Info, error) {
	info, err := api.StatObject(ctx, s.opts.Bucket, s.path(call.Key), getOptions(store.Range{ETag: part.ETag}))
	if err != nil {
		return nil, store.Info{}, explain(call, err)
	}
	return call.PastEnd(part, store.Info{Key: call.Key, Size: info.Size, ETag: info.ETag, Modified: info.LastModified})
}

// Put writes an object, a large one in parts.
func (s *Store) Put(ctx context.Context, key string, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	ctx, call, api, err := s.begin(ctx, store.OpPut, key)
	if err != nil {
		return store.Info{}, err
	}
	return call.Write(ctx, &writing{api: api, call: call, bucket: s.opts.Bucket, key: s.path(key), path: s.path}, r,
		size, cond)
}

// List lists the objects page by page.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return s.list(ctx, prefix, true)
}

// Folders lists the folders right below a prefix, page by page.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return s.list(ctx, prefix, false)
}

func (s *Store) list(ctx context.Context, prefix string, recursive bool) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
		api, err := s.client(call)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		call.InOrder(s.objects(ctx, call, api, prefix, recursive))(yield)
	}
}

// objects yields the objects below a prefix, or with recursive false the folders right below it.
func (s *Store) objects(ctx context.Context, call *wire.Call,
	api *minio.Core, prefix string, recursive bool) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		owner := false
		for o := range api.ListObjectsIter(ctx, s.opts.Bucket,
			minio.ListObjectsOptions{Prefix: s.path(prefix), Recursive: recursive, FetchOwner: &owner}) {
			if o.Err != nil {
				yield(store.Info{}, explain(call, o.Err))
				return
			}
			info := store.Info{Key: strings.TrimPrefix(o.Key, s.path("")), Size: o.Size, ETag: o.ETag, Modified: o.LastModified}
			folder := o.ETag == "" && strings.HasSuffix(info.Key, "/") // the client yields folders and objects alike
			if !recursive && !folder {
				continue
			}
			if !yield(info, nil) {
				return
			}
		}
		if ctx.Err() != nil { // the client then ends a listing without an error
			yield(store.Info{}, call.Fail(ctx.Err()))
		}
	}
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, key)
	if err != nil {
		return err
	}
	err = api.RemoveObject(ctx, s.opts.Bucket, s.path(key), minio.RemoveObjectOptions{})
	if err == nil {
		return nil
	}
	return call.Gone(explain(call, err))
}

// explain converts an error of the client.
func explain(call *wire.Call, err error) error {
	var response minio.ErrorResponse
	switch {
	case !errors.As(err, &response):
		return call.Fail(err)
	case call.Status() == 0: // the client refused to send the request
		return call.Unusable(err, "check the store's URL, minio://host:port/bucket/prefix")
	}
	if call.Status() == http.StatusOK && response.Code == "InternalError" {
		return call.NotObject() // the client could not read the headers
	}
	return call.Refused(response.Code, response.Message)
}
