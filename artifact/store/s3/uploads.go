package s3

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// Unfinished lists the multipart uploads that were begun and not completed.
func (s *Store) Unfinished(ctx context.Context, prefix string) ([]store.Unfinished, error) {
	ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
	api, err := s.client(ctx, call)
	if err != nil {
		return nil, err
	}
	return wire.Unfinished(s.path(""), prefix,
		func(below string, after wire.UploadMarker) (page wire.UploadPage, err error) {
			out, err := api.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{
				Bucket: &s.opts.Bucket, Prefix: optional(below), KeyMarker: optional(after.Key), UploadIdMarker: optional(after.ID),
			})
			if err != nil {
				return page, api.explain(call, err)
			}
			for _, u := range out.Uploads {
				page.Uploads = append(page.Uploads, store.Unfinished{Key: aws.ToString(u.Key), ID: aws.ToString(u.UploadId),
					Begun: aws.ToTime(u.Initiated)})
			}
			page.Next = wire.UploadMarker{Key: aws.ToString(out.NextKeyMarker), ID: aws.ToString(out.NextUploadIdMarker)}
			page.More = aws.ToBool(out.IsTruncated)
			return page, nil
		})
}

// Abort removes an unfinished upload.
func (s *Store) Abort(ctx context.Context, u store.Unfinished) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, u.Key)
	if err != nil {
		return err
	}
	_, err = api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.opts.Bucket,
		Key: aws.String(s.path(u.Key)), UploadId: &u.ID})
	return call.Aborted(err, func() error { return api.explain(call, err) })
}
