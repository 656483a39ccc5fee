package minio

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// uploadsAtOnce is the maximum number of unfinished uploads in a page of a listing, a limit of the protocol.
const uploadsAtOnce = 1000

// Unfinished lists the multipart uploads that were begun and not completed. MinIO lists those that were begun since the
// server started, and removes each after a day (api stale_uploads_expiry); other servers list all.
func (s *Store) Unfinished(ctx context.Context, prefix string) ([]store.Unfinished, error) {
	ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
	api, err := s.client(call)
	if err != nil {
		return nil, err
	}
	return wire.Unfinished(s.path(""), prefix,
		func(below string, after wire.UploadMarker) (page wire.UploadPage, err error) {
			out, err := api.ListMultipartUploads(ctx, s.opts.Bucket, below, after.Key, after.ID, "", uploadsAtOnce)
			if err != nil {
				return page, explain(call, err)
			}
			for _, u := range out.Uploads {
				page.Uploads = append(page.Uploads, store.Unfinished{Key: u.Key, ID: u.UploadID, Begun: u.Initiated})
			}
			page.Next, page.More = wire.UploadMarker{Key: out.NextKeyMarker, ID: out.NextUploadIDMarker}, out.IsTruncated
			return page, nil
		})
}

// Abort removes an unfinished upload.
func (s *Store) Abort(ctx context.Context, u store.Unfinished) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, u.Key)
	if err != nil {
		return err
	}
	err = api.AbortMultipartUpload(ctx, s.opts.Bucket, s.path(u.Key), u.ID)
	return call.Aborted(err, func() error { return explain(call, err) })
}
