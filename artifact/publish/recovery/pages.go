package recovery

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// takePages restores pages that the store has lost: from this publisher's copies, or made again from the list of all
// versions in one file, which has the same content. A page that is in neither is reported as missing; hosts can still
// follow the channels.
func (b *rebuilding) takePages(ctx context.Context, project string, head *trust.Role) error {
	digests, err := trust.Pages(head)
	if err != nil || len(digests) == 0 {
		return err
	}
	lost, err := lostPages(ctx, b.Publisher, project, digests)
	if err != nil {
		return err
	}
	var listed map[artifact.Digest][]byte
	for _, digest := range lost {
		key := trust.PageKey(project, digest)
		data := b.Client.KeptPage(project, digest)
		if data == nil && listed == nil {
			if listed, err = b.listedPages(ctx, project, head); err != nil {
				return err
			}
		}
		if data == nil {
			data = listed[digest]
		}
		if data == nil {
			b.result.Pages = append(b.result.Pages, key)
			continue
		}
		b.objects = append(b.objects, publish.Object{Key: key, Data: data, Page: true})
		b.result.Restored = append(b.result.Restored, key)
	}
	return nil
}

// listedPages makes the pages of a head again from the list of all versions beside it. If the list is truncated or
// forged, the pages have other digests than those in the head.
func (b *rebuilding) listedPages(ctx context.Context, project string, head *trust.Role) (map[artifact.Digest][]byte,
	error) {
	data, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(project, head.Signed.Version))
	if err != nil {
		return map[artifact.Digest][]byte{}, publish.Unanswered(err)
	}
	whole, err := trust.Decode[tuf.TargetsType](data)
	if err != nil {
		return map[artifact.Digest][]byte{}, nil // it is damaged, and has none
	}
	forms, err := trust.Split(project, whole, false)
	if err != nil {
		return map[artifact.Digest][]byte{}, nil
	}
	return forms.Pages, nil
}
