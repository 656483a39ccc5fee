package releases

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Stage begins to upload the artifact of a request while it is packed into a file, after the checks of Publish that do
// not need it. It returns nil if the artifact has to be complete first: if the store takes only whole objects, or has
// the version already, or does not have the project, whose objects garbage collection would not remove.
func Stage(ctx context.Context, p *publish.Publisher, r Request, file string) (*blobs.Stage, error) {
	if err := r.check(); err != nil {
		return nil, publish.MistakeOf(err)
	}
	format, err := artifact.FormatOf(r.File)
	if err != nil {
		return nil, err
	}
	release := artifact.Release{Project: r.Project, Version: r.Version, Format: format,
		Digest: artifact.NewDigest([32]byte{})} // no artifact has it
	delegated, err := mayPublish(ctx, r.publisher(p), release, Request{Project: r.Project, Version: r.Version,
		Channel: r.Channel, Force: true, unpacked: true})
	var published *Immutable
	if errors.As(err, &published) || errors.Is(err, trust.ErrNoProject) || err == nil && !delegated {
		return nil, nil // Publish decides with the artifact
	}
	if err != nil {
		return nil, err
	}
	return blobs.NewStage(ctx, p.Store, "deploy/"+r.Project, file)
}
