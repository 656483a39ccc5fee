// Package source downloads from URLs of users: an artifact to publish, or a tree to build. It is used on workstations
// and in CI; hosts read stores.
//
//	https://host/app.tar.zst?checksum=sha256:...    a file on a web server
//	s3://bucket/path/app.tar.zst?region=eu-west-1   an object in a store, by any URL of package stores,
//	minio://host:9000/bucket/app.tar.zst?tls=0      with the name of the file at its end
//	file:///home/me/app.tar.zst                     a local file or directory
//	git::https://host/app.git?ref=v1.2              a git repository at a branch, tag or commit
//	git::ssh://git@host/app.git//states?ref=main    a directory of a repository
//
// It uses a small part of go-getter: one getter for each kind of URL, selected without detection; no archive formats,
// since only artifact/unpack opens archives; no symbolic links; no resuming into existing files. A download gets its
// name only when it is complete and its checksum is verified.
package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options configure a fetch. The zero value is right for an ordinary fetch.
type Options struct {
	Limit int64 // most bytes of a file, or of all files of a tree; 0 means 5 GiB
}

func (o Options) limit() int64 {
	if o.Limit == 0 {
		return 5 << 30
	}
	return o.Limit
}

// Info describes a fetched file.
type Info struct {
	Size   int64
	Digest artifact.Digest
}

// File fetches the file at a URL to the path dst, and replaces an existing file.
func File(ctx context.Context, rawURL, dst string, opts Options) (Info, error) {
	o, err := parse(rawURL)
	if err != nil {
		return Info{}, err
	}
	info, err := o.file(ctx, dst, opts.limit())
	if err != nil {
		return Info{}, fmt.Errorf("fetching %s: %w", o.shown(), err)
	}
	return info, nil
}

// Commit is the git commit of a fetched tree; zero for a tree that was not fetched by git.
type Commit struct {
	URL string // of the repository, without options
	ID  string // all digits of the commit
	Tag string // of the ref; "" for a branch or a commit
}

// Tree fetches a directory, or a git repository without its history, to the directory dst, which must be empty or not
// exist. Submodules are not fetched.
func Tree(ctx context.Context, rawURL, dst string, opts Options) (Commit, error) {
	o, err := parse(rawURL)
	if err != nil {
		return Commit{}, err
	}
	if o.kind == kindGit {
		o.commit = &Commit{URL: o.shown()}
	}
	if err := o.tree(ctx, dst, opts.limit()); err != nil {
		return Commit{}, fmt.Errorf("fetching %s: %w", o.shown(), err)
	}
	if o.commit == nil {
		return Commit{}, nil
	}
	return *o.commit, nil
}

func (o origin) file(ctx context.Context, dst string, limit int64) (Info, error) {
	if o.kind == kindGit {
		return Info{}, diag.Source.Hint(errors.New("a git repository is a tree, not a file"),
			"name a file, or build the tree")
	}
	temp, err := os.CreateTemp(filepath.Dir(dst), ".corpus-source-*")
	if err != nil {
		return Info{}, err
	}
	defer os.Remove(temp.Name()) // after success it has another name
	defer temp.Close()
	if err := o.get(ctx, temp.Name(), getter.ModeFile, limit); err != nil {
		return Info{}, err
	}
	info, err := o.check(ctx, temp.Name(), limit)
	if err != nil {
		return Info{}, err
	}
	return info, os.Rename(temp.Name(), dst)
}

// check hashes the fetched file, compares its digest with the expected one, and syncs the file.
func (o origin) check(ctx context.Context, path string, limit int64) (Info, error) {
	f, err := walk.OpenFile(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, artifact.Stoppable(ctx, f))
	if err != nil {
		return Info{}, err
	}
	if n > limit {
		return Info{}, tooLarge(limit)
	}
	info := Info{Size: n, Digest: artifact.NewDigest([32]byte(hash.Sum(nil)))}
	if o.checksum != "" && info.Digest != o.checksum {
		return Info{}, diag.Source.Hint(fmt.Errorf("its checksum is %s, not %s", info.Digest, o.checksum),
			"the file is not the expected one: check where the checksum comes from")
	}
	return info, errors.Join(f.Chmod(0o644), f.Sync())
}

func tooLarge(limit int64) error {
	return diag.Source.Hint(fmt.Errorf("it has more than %d bytes", limit),
		"if it is really that large, raise the limit with --max-source")
}

func (o origin) tree(ctx context.Context, dst string, limit int64) error {
	if o.kind != kindGit && o.kind != kindFile {
		return diag.Source.Hint(errors.New("a tree comes from git or from a directory"),
			"write git:: before the URL of a repository; an archive is fetched as a file")
	}
	if o.checksum != "" {
		return diag.Source.Hint(errors.New("a tree has no checksum"), "name a commit with ?ref=, which is one")
	}
	temp, err := os.MkdirTemp(filepath.Dir(dst), ".corpus-source-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	got := filepath.Join(temp, "tree")
	if err := o.get(ctx, got, getter.ModeDir, limit); err != nil {
		return err
	}
	if err := inspect(got, limit); err != nil {
		return err
	}
	// Go's rename does not replace an empty directory, and rmdir removes only an empty one.
	if err := syscall.Rmdir(dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Source.Hint(
			fmt.Errorf("replacing %s: %w", dst, err), "it must not be there yet, or be an empty directory")
	}
	return os.Rename(got, dst)
}

// get calls go-getter with only the getter for the URL.
func (o origin) get(ctx context.Context, dst string, mode getter.Mode, limit int64) error {
	client := getter.Client{
		Getters:         []getter.Getter{o.getter(limit)},
		Decompressors:   map[string]getter.Decompressor{},
		DisableSymlinks: true,
	}
	_, err := client.Get(ctx, &getter.Request{Src: o.url.String(), Dst: dst, GetMode: mode})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error // its text would show the query
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
