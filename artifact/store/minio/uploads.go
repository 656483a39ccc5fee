package minio

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// Unfinished lists the uploads that were begun and not completed. MinIO itself lists those of one object
// alone, and removes uploads after a day by itself (api stale_uploads_expiry); other servers list all.
func (s *Store) Unfinished(ctx context.Context, prefix string) ([]store.Unfinished, error) {
	ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
	api, err := s.client(call)
	if err != nil {
		return nil, err
	}
	var all []store.Unfinished
	for key, id := "", ""; ; {
		page, err := api.ListMultipartUploads(ctx, s.opts.Bucket, s.path(prefix), key, id, "", 1000)
		if err != nil {
			return nil, explain(call, err)
		}
		for _, u := range page.Uploads {
			all = append(all, store.Unfinished{Key: strings.TrimPrefix(u.Key, s.path("")), ID: u.UploadID, Begun: u.Initiated})
		}
		if !page.IsTruncated || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
			return all, nil
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// Abort removes an unfinished upload.
func (s *Store) Abort(ctx context.Context, u store.Unfinished) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, u.Key)
	if err != nil {
		return err
	}
	err = api.AbortMultipartUpload(ctx, s.opts.Bucket, s.path(u.Key), u.ID)
	if err == nil {
		return nil
	}
	return call.Gone(explain(call, err))
}
