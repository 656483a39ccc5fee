package releases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// uploadAndSign uploads and signs an artifact and its sidecars.
func uploadAndSign(ctx context.Context, p *publish.Publisher, ready *prepared, r Request) error {
	release, about := ready.release, ready.described
	about.sidecars = maps.Clone(ready.sidecars)
	if !r.Plain {
		if err := addChunks(ctx, p, r, &about, ready); err != nil {
			return err
		}
	}
	if err := errors.Join(upload(ctx, p, release, r), uploadSidecars(ctx, p, about)); err != nil {
		return err
	}
	if p.Hand != nil {
		if err := blobs.LeaveNote(ctx, p.Store, release, about.objects(), about.packs); err != nil {
			return err
		}
	}
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		return add(ctx, n, about, r)
	})
	if err != nil {
		return err
	}
	return keepThere(context.WithoutCancel(ctx), p, about, r) // the version is published: an interrupt comes too late
}

// keepThere uploads objects again that garbage collection removed before they were signed: an object that an earlier
// attempt left long ago was in the store, and was not uploaded.
func keepThere(ctx context.Context, p *publish.Publisher, about described, r Request) error {
	missing, err := blobs.Missing(ctx, p.Store, about.objects())
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.Join(upload(ctx, p, about.release, r), uploadSidecars(ctx, p, about))
}

// upload writes the artifact unless the store has it.
func upload(ctx context.Context, p *publish.Publisher, release artifact.Release, r Request) error {
	if r.Staged != nil {
		if err := r.Staged.Put(ctx, trust.ObjectKey(release), release.Length, release.Digest); err != nil {
			return fmt.Errorf("uploading %s: %w", release, err)
		}
		return nil
	}
	f, err := walk.OpenFile(r.File)
	if err != nil {
		return fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	if err := blobs.PutOnce(ctx, p.Store, trust.ObjectKey(release), r.shown(release.String(), f, release.Length),
		release.Length, release.Digest); err != nil {
		return fmt.Errorf("uploading %s: %w", release, err)
	}
	return nil
}

// shown returns a reader of a file that is uploaded, which reports the progress.
func (r Request) shown(what string, f io.ReadSeeker, size int64) io.ReadSeeker {
	if r.Progress == nil {
		return f
	}
	return &uploading{ReadSeeker: f, progress: func(done int64) { r.Progress(what, done, size) }}
}

// uploading is a file that is being uploaded. A retry reads it again.
type uploading struct {
	io.ReadSeeker
	done     int64
	progress func(done int64)
}

func (u *uploading) Read(p []byte) (int, error) {
	n, err := u.ReadSeeker.Read(p)
	if u.done += int64(n); n > 0 {
		u.progress(u.done)
	}
	return n, err
}

func (u *uploading) Seek(offset int64, whence int) (int64, error) {
	at, err := u.ReadSeeker.Seek(offset, whence)
	if err == nil {
		u.done = at
	}
	return at, err
}

// Immutable is the error for a version that is published with other bytes.
type Immutable struct {
	Release artifact.Release // as it was published
	Digest  artifact.Digest  // of the artifact that was to be published
}

func (e *Immutable) Error() string {
	return fmt.Sprintf("%s is published with digest %s, and this artifact has %s", e.Release, e.Release.Digest, e.Digest)
}

// Hint proposes to publish a change as a new version.
func (e *Immutable) Hint() string {
	return diag.Version.Coded("a changed tree is a new version: publish it under one")
}

// uploadSidecars writes the artifact's sidecars.
func uploadSidecars(ctx context.Context, p *publish.Publisher, d described) error {
	for kind, data := range d.sidecars {
		digest := artifact.NewDigest(sha256.Sum256(data))
		if err := blobs.PutOnce(ctx, p.Store, trust.SidecarKey(d.release, kind, digest), bytes.NewReader(data),
			int64(len(data)), digest); err != nil {
			return fmt.Errorf("uploading the %s of %s: %w", kind, d.release, err)
		}
	}
	return nil
}
