package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/deb"
	"github.com/corpus-agent/corpus-agent/packaging/oci"
	"github.com/corpus-agent/corpus-agent/packaging/statement"
)

// write writes every output under a temporary name, and renames them when all are complete.
func (b *build) write(ctx context.Context) error {
	made := map[string]string{} // final name -> temporary path
	digests := map[string]string{}
	for i, output := range b.Outputs {
		temp := filepath.Join(b.work, fmt.Sprintf("output-%d", i))
		digest, err := b.writeOne(ctx, output, temp)
		if err != nil {
			return err
		}
		made[output], digests[filepath.Base(output)] = temp, digest
	}
	statements, err := b.statements(ctx, digests)
	if err != nil {
		return err
	}
	for name, data := range statements {
		made[name] = filepath.Join(b.work, filepath.Base(name))
		if err := os.WriteFile(made[name], data, 0o644); err != nil {
			return err
		}
	}
	b.result.Outputs = b.Outputs
	return install(ctx, made)
}

func (b *build) writeOne(ctx context.Context, output, temp string) (string, error) {
	var beside Beside
	if format(output) == ".tar.zst" {
		beside = b.Beside
	}
	sum := sha256.New()
	err := beside.Write(temp, 0o666, func(w io.Writer) error {
		return b.pack(ctx, output, artifact.StoppableWriter(ctx, io.MultiWriter(w, sum)))
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func (b *build) pack(ctx context.Context, output string, w io.Writer) error {
	switch format := format(output); format {
	case ".deb", ".rpm":
		return b.packPackage(format[1:], w)
	case ".oci.tar":
		return b.packImage(ctx, w)
	}
	options := packaging.Options{Time: b.Time, Checked: true}
	if b.Progress != nil {
		options.Progress = func(done, total int64) { b.Progress(filepath.Base(output), done, total) }
	}
	summary, err := packaging.Build(ctx, b.stage, w, options)
	b.result.Summary = summary
	return err
}

// packPackage writes a package: deb or rpm.
func (b *build) packPackage(format string, w io.Writer) error {
	scratch, err := os.MkdirTemp(b.work, "package")
	if err != nil {
		return err
	}
	return deb.Write(w, deb.Request{
		Format: format, Tree: b.stage, Recipe: b.recipe, Name: b.result.Name, Version: b.result.Version,
		Prefix: b.recipe.Prefix, Arch: b.result.Needs.Arch, Content: b.result.Content, Time: b.Time,
		Files: b.files, Scratch: scratch,
	})
}

// packImage writes an OCI image. If the release needs no certain architecture, the image has that of this machine.
func (b *build) packImage(ctx context.Context, w io.Writer) error {
	arch := b.result.Needs.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	return oci.Write(ctx, w, oci.Request{
		Tree: b.stage, Prefix: b.recipe.Prefix, Name: b.result.Name, Version: b.result.Version, Arch: arch,
		Content: b.result.Content, Command: b.recipe.Package.Command, Base: b.onTop(), Files: b.files, Time: b.Time,
	}, b.work)
}

// install moves finished files to their places, across file systems if necessary. Steps that can fail, mostly for
// lack of disk space, are done before the first file is renamed.
func install(ctx context.Context, made map[string]string) (err error) {
	var ready []*durable.Pending
	defer func() {
		for _, f := range ready {
			err = errors.Join(err, f.Close())
		}
	}()
	for to, from := range made {
		f, err := durable.Create(to)
		if err != nil {
			return err
		}
		ready = append(ready, f)
		if err := errors.Join(fill(artifact.StoppableWriter(ctx, f), from), f.Sync()); err != nil {
			return fmt.Errorf("writing %s: %w", to, err)
		}
	}
	for _, f := range ready {
		if err := f.Commit(0o644, true); err != nil {
			return err
		}
	}
	return nil
}

func fill(w io.Writer, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// statements returns the files that are written beside the first output, by name.
func (b *build) statements(ctx context.Context, digests map[string]string) (map[string][]byte, error) {
	about := statement.About{
		Name: b.result.Name, Version: b.result.Version, Content: b.result.Content, Builder: b.recipe.Builder,
		Base:   b.recipe.Build.Base,
		Source: b.source(ctx), Tool: b.Tool, Outputs: digests,
	}
	list, err := statement.SPDX(ctx, about, os.DirFS(b.stage))
	if err != nil {
		return nil, err
	}
	provenance, err := statement.Provenance(about)
	if err != nil {
		return nil, err
	}
	first := strings.TrimSuffix(b.Outputs[0], format(b.Outputs[0]))
	b.result.Statements = []string{first + ".spdx.json", first + ".provenance.json"}
	return map[string][]byte{first + ".spdx.json": list, first + ".provenance.json": provenance}, nil
}

// source returns the commit of the tree, if it is in a git repository.
func (b *build) source(ctx context.Context) statement.Source {
	if b.Commit.ID != "" {
		return statement.Source{URI: "git+" + b.Commit.URL + "@" + b.Commit.ID, Commit: b.Commit.ID}
	}
	out, err := b.gitDescribe(ctx, "--abbrev=40", "--exclude=*")
	if err != nil {
		return statement.Source{}
	}
	id, modified := strings.CutSuffix(strings.TrimSpace(string(out)), "-dirty")
	return statement.Source{URI: "git:" + id, Commit: id, Modified: modified}
}
