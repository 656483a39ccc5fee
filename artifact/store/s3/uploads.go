package s3

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// Unfinished lists the uploads that were begun and not completed.
func (s *Store) Unfinished(ctx context.Context, prefix string) ([]store.Unfinished, error) {
	ctx, call := wire.Begin(ctx, store.OpList, prefix, s.name(prefix))
	api, err := s.client(ctx, call)
	if err != nil {
		return nil, err
	}
	var all []store.Unfinished
	pages := s3.NewListMultipartUploadsPaginator(api, &s3.ListMultipartUploadsInput{Bucket: &s.opts.Bucket, Prefix: aws.String(s.path(prefix))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, api.explain(call, err)
		}
		for _, u := range page.Uploads {
			key := strings.TrimPrefix(aws.ToString(u.Key), s.path(""))
			all = append(all, store.Unfinished{Key: key, ID: aws.ToString(u.UploadId), Begun: aws.ToTime(u.Initiated)})
		}
	}
	return all, nil
}

// Abort removes an unfinished upload.
func (s *Store) Abort(ctx context.Context, u store.Unfinished) error {
	ctx, call, api, err := s.begin(ctx, store.OpDelete, u.Key)
	if err != nil {
		return err
	}
	_, err = api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.opts.Bucket, Key: aws.String(s.path(u.Key)), UploadId: &u.ID})
	if err == nil {
		return nil
	}
	return call.Gone(api.explain(call, err))
}
