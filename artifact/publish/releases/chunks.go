package releases

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

const (
	// leastChunked is the minimum size of an artifact that is also published in chunks. For a smaller one, the request
	// for the index costs more than chunks save.
	leastChunked = 256 << 10
	// leastShare is the minimum ratio of the sizes of an artifact and its index. A host reads the index before it knows
	// whether chunks save anything, and must not lose more than 2 % if they do not.
	leastShare = 60
	// leanOn is the number of earlier versions that are searched for chunks.
	leanOn = 20
)

// addChunks makes the index of an artifact's tree, and uploads the chunks that no earlier version of the project has.
func addChunks(ctx context.Context, p *publish.Publisher, r Request, d *described, ready *prepared) error {
	if d.release.Length < leastChunked {
		return nil
	}
	known, sources, err := knownChunks(ctx, p, d.release)
	if err != nil {
		return err
	}
	file, err := durable.ScratchFile()
	if err != nil {
		return err
	}
	defer file.Close()
	stream := chunk.NewStream(ready.root, ready.manifest)
	index, pack, size, err := chunk.Pack(ctx, stream, known, file)
	if err = errors.Join(err, stream.Close()); err != nil {
		return fmt.Errorf("cutting %s: %w", d.release, err)
	}
	data, err := index.Encode()
	if err != nil || int64(len(data))*leastShare > d.release.Length || index.List > chunk.MaxList {
		return err
	}
	if size > 0 {
		fresh, err := putPack(ctx, p, r, pack, file, size)
		if err != nil {
			return fmt.Errorf("uploading the chunks of %s: %w", d.release, err)
		}
		if i := slices.Index(index.Packs, pack); fresh != pack {
			index.Packs[i] = fresh
			if data, err = index.Encode(); err != nil {
				return err
			}
		}
		d.packs = []artifact.Digest{fresh}
	}
	d.sidecars[trust.KindIndex] = data
	for digest, source := range sources {
		if slices.Contains(index.Packs, digest) {
			d.leansOn = append(d.leansOn, source)
		}
	}
	return nil
}

// putPack uploads a pack. If the store already has that pack although no known version names it, an interrupted
// publisher left it, and it may be removed before this version is signed. Then some bytes that no index points to are
// added to the pack, which gives it another name.
func putPack(ctx context.Context, p *publish.Publisher, r Request, pack artifact.Digest, file *os.File,
	size int64) (artifact.Digest, error) {
	for {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		_, err := p.Store.Put(ctx, chunk.PackKey(r.Project, pack), r.shown("chunks of "+r.Project+" "+r.Version, file, size),
			size, store.Condition{IfAbsent: true})
		if !errors.Is(err, store.ErrPrecondition) {
			return pack, err
		}
		var different [16]byte
		_, _ = rand.Read(different[:]) // never fails
		if _, err := file.WriteAt(different[:], size); err != nil {
			return "", err
		}
		size += int64(len(different))
		sum := sha256.New()
		if _, err := io.Copy(sum, artifact.Stoppable(ctx, io.NewSectionReader(file, 0, size))); err != nil {
			return "", err
		}
		pack = artifact.NewDigest([32]byte(sum.Sum(nil)))
	}
}

// knownChunks reads the indexes of the project's newest versions. For each pack it also returns a release that names
// the pack.
func knownChunks(ctx context.Context, p *publish.Publisher, r artifact.Release) (chunk.Known,
	map[artifact.Digest]artifact.Release, error) {
	known, sources := chunk.Known{}, map[artifact.Digest]artifact.Release{}
	d, err := p.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	role, err := d.Project(ctx, r.Project)
	if err != nil {
		return nil, nil, err
	}
	releases := trust.Releases(r.Project, role)
	slices.Reverse(releases)
	for _, before := range releases[:min(len(releases), leanOn)] {
		index, err := blobs.FetchIndex(ctx, d.Client, before)
		var refused *trust.Refused
		if errors.Is(err, trust.ErrNoSidecar) || errors.Is(err, store.ErrNotFound) || errors.As(err, &refused) {
			continue // lost or damaged: its chunks are uploaded again
		}
		if err != nil {
			return nil, nil, err
		}
		known.Add(index)
		for _, pack := range index.Packs {
			sources[pack] = before
		}
	}
	there, err := blobs.Packs(ctx, p.Store, r.Project)
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(known, func(_ chunk.Sum, at chunk.Place) bool { return !there(at.Pack) })
	return known, sources, nil
}

// errWithdrawn is the error for a version whose chunks were to be used again and that was removed meanwhile, so that
// its chunks may be removed at any moment.
var errWithdrawn = errors.New("an earlier version was withdrawn at the same time")

// checkLeansOn returns an error if the project's role to be signed lacks a version that names the packs that are used
// again. New packs are safe because they are young.
func (d described) checkLeansOn(role *trust.Role) error {
	releases := trust.Releases(d.release.Project, role)
	for _, source := range d.leansOn {
		if !slices.Contains(releases, source) {
			return errWithdrawn
		}
	}
	return nil
}
