package releases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// described has the signed data of an artifact in addition to its length and digest.
type described struct {
	release  artifact.Release
	tree     artifact.Digest
	sidecars map[trust.Kind][]byte
	leansOn  []artifact.Release // releases whose chunks are used again
	packs    []artifact.Digest  // uploaded for it, and not in any version yet
}

// objects returns the keys of the artifact and its sidecars.
func (d described) objects() []string {
	keys := []string{trust.ObjectKey(d.release)}
	for kind, data := range d.sidecars {
		keys = append(keys, trust.SidecarKey(d.release, kind, artifact.NewDigest(sha256.Sum256(data))))
	}
	slices.Sort(keys)
	return keys
}

// prepared is an artifact that was read, unpacked and checked. None of it was uploaded.
type prepared struct {
	described
	root     *os.Root // the unpacked tree
	manifest *manifest.Manifest
	close    func()
}

// describe unpacks an artifact like a host, which finds faults that hosts would refuse, and makes the list of blocks.
// Plain artifacts are only unpacked. The caller must close the result.
func describe(ctx context.Context, release artifact.Release, r Request) (*prepared, error) {
	dir, done, err := durable.Scratch()
	if err != nil {
		return nil, err
	}
	root, err := walk.OpenTree(dir)
	if err != nil {
		done()
		return nil, err
	}
	d := &prepared{described: described{release: release, sidecars: map[trust.Kind][]byte{}}, root: root, close: func() {
		_ = root.Close() // it was only read
		done()
	}}
	if err := d.read(ctx, dir, r); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// read fills in the signed data of an artifact that does not depend on the chunks of other versions.
func (d *prepared) read(ctx context.Context, dir string, r Request) (err error) {
	if d.manifest, err = unpackFile(ctx, d.release, r.File, d.root); err != nil {
		return err
	}
	if r.Check != nil {
		if err := r.Check(ctx, dir); err != nil {
			return err
		}
	}
	if err := d.addStatements(r.File); err != nil || r.Plain {
		return err
	}
	d.tree = manifest.Digest(d.manifest.Encode())
	return d.addBlocks(ctx, r.File)
}

func unpackFile(ctx context.Context, release artifact.Release, file string, root *os.Root) (*manifest.Manifest, error) {
	f, err := walk.OpenFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the artifact: %w", err)
	}
	verified, err := trust.Verify(release, f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the artifact %s was changed while it was read: %w", file, err), f.Close())
	}
	unpacked, err := unpack.Into(ctx, verified, root, unpack.Limits{})
	if err := errors.Join(err, verified.Close()); err != nil {
		return nil, fmt.Errorf("reading the artifact %s: %w", file, err)
	}
	return unpacked.Tree, nil
}

// maxStatement is the maximum size, in bytes, of a statement.
const maxStatement = 64 << 20

// addStatements adds the statements that a build left beside the file. A statement about other bytes is an error, since
// it would be signed as a statement about these.
func (d *described) addStatements(file string) error {
	stem := strings.TrimSuffix(file, "."+string(d.release.Format))
	for _, kind := range trust.Statements() {
		name := stem + "." + string(kind)
		data, err := walk.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading what belongs to the artifact: %w", err)
		}
		if len(data) > maxStatement || !json.Valid(data) {
			return publish.NewMistake(diag.Tree, "build it again, or move the file away to publish without it",
				"%s is not JSON, or larger than %s", name, diag.Size(maxStatement))
		}
		if kind == trust.KindProvenance && !bytes.Contains(data, []byte(d.release.Digest.Hex())) {
			return publish.NewMistake(diag.Tree, "build both again with one `corpus build`, or move the file away to publish "+
				"without it",
				"%s is about other bytes than %s", name, file)
		}
		d.sidecars[kind] = data
	}
	return nil
}

func (d *described) addBlocks(ctx context.Context, file string) error {
	f, err := walk.OpenFile(file)
	if err != nil {
		return fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	list, err := trust.MakeBlocks(artifact.Stoppable(ctx, f), d.release.Length)
	if err != nil || list == nil {
		return err
	}
	d.sidecars[trust.KindBlocks] = list
	return nil
}

// sign adds the artifact's sidecars to a project's role.
func (d described) sign(role *trust.Role) error {
	for kind, data := range d.sidecars {
		sum := sha256.Sum256(data)
		target := tuf.TargetFile()
		target.Length = int64(len(data))
		target.Hashes = tuf.Hashes{"sha256": sum[:]}
		role.Signed.Targets[trust.SidecarTarget(d.release, kind)] = target
	}
	if d.tree == "" {
		return nil
	}
	return trust.SetTree(role, d.release, d.tree)
}
