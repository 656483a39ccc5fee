package minio

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"

	minio "github.com/minio/minio-go/v7"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

const (
	crcHeader       = "X-Amz-Checksum-Crc32"
	algorithmHeader = "X-Amz-Checksum-Algorithm"
)

// writing makes the requests of one Put.
type writing struct {
	api    *minio.Core
	call   *wire.Call
	bucket string
	key    string
	path   func(key string) string // returns the key in the bucket
}

func putOptions(cond store.Condition, headers map[string]string) minio.PutObjectOptions {
	opts := minio.PutObjectOptions{UserMetadata: headers, DisableContentSha256: true} // the sum is known already
	if cond.IfAbsent {
		opts.SetMatchETagExcept("*")
	}
	if cond.IfMatch != "" {
		opts.SetMatchETag(cond.IfMatch)
	}
	return opts
}

func (w *writing) Whole(ctx context.Context, body io.ReadSeeker, size int64,
	sums wire.Sums, cond store.Condition) (wire.Written, error) {
	out, err := w.api.PutObject(ctx, w.bucket, w.key, body, size, base64.StdEncoding.EncodeToString(sums.MD5), sums.SHA256,
		putOptions(cond, map[string]string{crcHeader: sums.CRC32}))
	if err != nil {
		return wire.Written{}, explain(w.call, err)
	}
	return wire.Written{ETag: out.ETag, CRC32: out.ChecksumCRC32, Size: -1}, nil
}

func (w *writing) Head(ctx context.Context) (wire.Written, error) {
	info, err := w.api.StatObject(ctx, w.bucket, w.key, minio.GetObjectOptions{Checksum: true})
	if err != nil {
		return wire.Written{}, explain(w.call, err)
	}
	return wire.Written{ETag: info.ETag, CRC32: info.ChecksumCRC32, Size: info.Size}, nil
}

func (w *writing) Read(ctx context.Context) (io.ReadCloser, error) {
	body, _, _, err := w.api.GetObject(ctx, w.bucket, w.key, minio.GetObjectOptions{})
	if err != nil {
		return nil, explain(w.call, err)
	}
	return body, nil
}

func (w *writing) Uploads(ctx context.Context) ([]string, error) {
	out, err := w.api.ListMultipartUploads(ctx, w.bucket, w.key, "", "", "", 1000)
	if err != nil {
		return nil, explain(w.call, err)
	}
	uploads := structsort.Without(out.Uploads, func(u minio.ObjectMultipartInfo) bool { return u.Key != w.key })
	structsort.Func(uploads, func(a, b minio.ObjectMultipartInfo) int { return b.Initiated.Compare(a.Initiated) })
	var ids []string
	for _, u := range uploads {
		ids = append(ids, u.UploadID)
	}
	return ids, nil
}

func (w *writing) Parts(ctx context.Context, upload string) (map[int]wire.Written, error) {
	known := map[int]wire.Written{}
	for after := 0; ; {
		page, err := w.api.ListObjectParts(ctx, w.bucket, w.key, upload, after, 1000)
		if err != nil {
			return nil, explain(w.call, err)
		}
		for _, p := range page.ObjectParts {
			known[p.PartNumber] = wire.Written{ETag: p.ETag, CRC32: p.ChecksumCRC32, Size: p.Size}
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= after {
			return known, nil
		}
		after = page.NextPartNumberMarker
	}
}

func (w *writing) Begin(ctx context.Context, checked bool) (string, error) {
	headers := map[string]string{}
	if checked {
		headers[algorithmHeader] = "CRC32"
	}
	upload, err := w.api.NewMultipartUpload(ctx, w.bucket, w.key, putOptions(store.Condition{}, headers))
	if err != nil {
		return "", explain(w.call, err)
	}
	return upload, nil
}

func (w *writing) Abort(ctx context.Context, upload string) error {
	err := w.api.AbortMultipartUpload(ctx, w.bucket, w.key, upload)
	return w.call.Aborted(err, func() error { return explain(w.call, err) })
}

func (w *writing) Send(ctx context.Context, upload string, number int, body io.ReadSeeker,
	size int64, sums wire.Sums) (wire.Written, error) {
	out, err := w.api.PutObjectPart(ctx, w.bucket, w.key, upload, number, body, size, minio.PutObjectPartOptions{
		Md5Base64: base64.StdEncoding.EncodeToString(sums.MD5), Sha256Hex: sums.SHA256, DisableContentSha256: true,
		CustomHeader: http.Header{crcHeader: {sums.CRC32}},
	})
	if err != nil {
		return wire.Written{}, explain(w.call, err)
	}
	return wire.Written{ETag: out.ETag, CRC32: out.ChecksumCRC32, Size: size}, nil
}

func (w *writing) Copy(ctx context.Context, call *wire.Call, upload string, number int, from string,
	size int64) (wire.Written, error) {
	out, err := w.api.CopyObjectPart(ctx, w.bucket, w.path(from), w.bucket, w.key, upload, number, 0, -1, nil)
	if err != nil {
		return wire.Written{}, explain(call, err)
	}
	return wire.Written{ETag: out.ETag, CRC32: out.ChecksumCRC32, Size: size}, nil
}

func (w *writing) Complete(ctx context.Context, upload string,
	parts []wire.Part, cond store.Condition) (wire.Written, error) {
	var done []minio.CompletePart
	for _, p := range parts {
		done = append(done, minio.CompletePart{PartNumber: p.Number, ETag: p.ETag, ChecksumCRC32: p.CRC32})
	}
	out, err := w.api.CompleteMultipartUpload(ctx, w.bucket, w.key, upload, done, putOptions(cond, nil))
	if err != nil {
		return wire.Written{}, explain(w.call, err)
	}
	return wire.Written{ETag: out.ETag, CRC32: out.ChecksumCRC32, Size: -1}, nil
}
