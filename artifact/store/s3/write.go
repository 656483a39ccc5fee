package s3

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// writing makes the requests of one Put.
type writing struct {
	api    *client
	call   *wire.Call
	bucket *string
	key    *string
	path   func(key string) string // returns the key in the bucket
}

func ifAbsent(cond store.Condition) *string {
	if cond.IfAbsent {
		return aws.String("*")
	}
	return nil
}

func (w *writing) Whole(ctx context.Context, body io.ReadSeeker, size int64,
	sums wire.Sums, cond store.Condition) (wire.Written, error) {
	out, err := w.api.PutObject(ctx, &s3.PutObjectInput{
		Bucket: w.bucket, Key: w.key, Body: body, ContentLength: &size, ChecksumCRC32: &sums.CRC32,
		IfMatch: optional(cond.IfMatch), IfNoneMatch: ifAbsent(cond), ContentType: contentType(w.key),
	})
	if err != nil {
		return wire.Written{}, w.api.explain(w.call, err)
	}
	return wire.Written{ETag: aws.ToString(out.ETag), CRC32: aws.ToString(out.ChecksumCRC32), Size: -1}, nil
}

func (w *writing) Head(ctx context.Context) (wire.Written, error) {
	out, err := w.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: w.bucket, Key: w.key,
		ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return wire.Written{}, w.api.explain(w.call, err)
	}
	return wire.Written{ETag: aws.ToString(out.ETag), CRC32: aws.ToString(out.ChecksumCRC32),
		Size: lengthOf(out.ContentLength)}, nil
}

func (w *writing) Read(ctx context.Context) (io.ReadCloser, error) {
	out, err := w.api.GetObject(ctx, &s3.GetObjectInput{Bucket: w.bucket, Key: w.key})
	if err != nil {
		return nil, w.api.explain(w.call, err)
	}
	return out.Body, nil
}

func (w *writing) Uploads(ctx context.Context) ([]string, error) {
	out, err := w.api.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: w.bucket, Prefix: w.key})
	if err != nil {
		return nil, w.api.explain(w.call, err)
	}
	uploads := structsort.Without(out.Uploads, func(u types.MultipartUpload) bool { return aws.ToString(u.Key) != *w.key })
	structsort.Func(uploads,
		func(a, b types.MultipartUpload) int { return aws.ToTime(b.Initiated).Compare(aws.ToTime(a.Initiated)) })
	var ids []string
	for _, u := range uploads {
		ids = append(ids, aws.ToString(u.UploadId))
	}
	return ids, nil
}

func (w *writing) Parts(ctx context.Context, upload string) (map[int]wire.Written, error) {
	known := map[int]wire.Written{}
	pages := s3.NewListPartsPaginator(w.api, &s3.ListPartsInput{Bucket: w.bucket, Key: w.key, UploadId: &upload})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, w.api.explain(w.call, err)
		}
		for _, p := range page.Parts {
			known[int(aws.ToInt32(p.PartNumber))] = wire.Written{ETag: aws.ToString(p.ETag),
				CRC32: aws.ToString(p.ChecksumCRC32), Size: lengthOf(p.Size)}
		}
	}
	return known, nil
}

func (w *writing) Begin(ctx context.Context, checked bool) (string, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: w.bucket, Key: w.key, ContentType: contentType(w.key)}
	if checked {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32
	}
	out, err := w.api.CreateMultipartUpload(ctx, in)
	if err != nil {
		return "", w.api.explain(w.call, err)
	}
	return aws.ToString(out.UploadId), nil
}

func (w *writing) Abort(ctx context.Context, upload string) error {
	_, err := w.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: w.bucket, Key: w.key,
		UploadId: &upload})
	return w.call.Aborted(err, func() error { return w.api.explain(w.call, err) })
}

// contentType returns the Content-Type of a page, a style sheet or a script, which browsers need; nil for other
// objects.
func contentType(key *string) *string {
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	}
	return optional(types[path.Ext(aws.ToString(key))])
}

func (w *writing) Send(ctx context.Context, upload string, number int, body io.ReadSeeker,
	size int64, sums wire.Sums) (wire.Written, error) {
	out, err := w.api.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: w.bucket, Key: w.key, UploadId: &upload, PartNumber: aws.Int32(int32(number)),
		Body: body, ContentLength: &size, ChecksumCRC32: &sums.CRC32,
	})
	if err != nil {
		return wire.Written{}, w.api.explain(w.call, err)
	}
	return wire.Written{ETag: aws.ToString(out.ETag), CRC32: aws.ToString(out.ChecksumCRC32), Size: size}, nil
}

func (w *writing) Copy(ctx context.Context, call *wire.Call, upload string, number int, from string,
	size int64) (wire.Written, error) {
	source := url.URL{Path: *w.bucket + "/" + w.path(from)}
	out, err := w.api.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: w.bucket, Key: w.key, UploadId: &upload,
		PartNumber: aws.Int32(int32(number)), CopySource: aws.String(source.EscapedPath())})
	if err != nil {
		return wire.Written{}, w.api.explain(call, err)
	}
	if out.CopyPartResult == nil {
		return wire.Written{}, errors.New("the server did not say that it copied")
	}
	return wire.Written{ETag: aws.ToString(out.CopyPartResult.ETag), Size: size,
		CRC32: aws.ToString(out.CopyPartResult.ChecksumCRC32)}, nil
}

func (w *writing) Complete(ctx context.Context, upload string,
	parts []wire.Part, cond store.Condition) (wire.Written, error) {
	var done []types.CompletedPart
	for _, p := range parts {
		c := types.CompletedPart{PartNumber: aws.Int32(int32(p.Number)), ETag: aws.String(p.ETag)}
		if p.CRC32 != "" {
			c.ChecksumCRC32 = aws.String(p.CRC32)
		}
		done = append(done, c)
	}
	out, err := w.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: w.bucket, Key: w.key, UploadId: &upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
		IfMatch: optional(cond.IfMatch), IfNoneMatch: ifAbsent(cond),
	})
	if err != nil {
		return wire.Written{}, w.api.explain(w.call, err)
	}
	return wire.Written{ETag: aws.ToString(out.ETag), CRC32: aws.ToString(out.ChecksumCRC32), Size: -1}, nil
}
