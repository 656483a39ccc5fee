package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// webGetter returns go-getter's own getter, with a client that reports failures like stores and ends a body at the
// limit. It does not resume files, since it would append bytes of another version.
func webGetter(shown string, limit int64) getter.Getter {
	client := wire.NewClient(bounded{wire.NewTransport(), shown, limit}, false)
	return &getter.HttpGetter{Client: client, DoNotCheckHeadFirst: true, XTerraformGetDisabled: true}
}

// bounded passes only responses that are files within the size limit.
type bounded struct {
	next  http.RoundTripper
	shown string
	limit int64
}

// RoundTrip performs a request.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, call := wire.Begin(req.Context(), store.OpGet, "", b.shown)
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, call.Fail(err)
	}
	redirect := resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != ""
	if resp.StatusCode != http.StatusOK && !redirect {
		_ = resp.Body.Close() // an error page
		return nil, call.Refused("", "")
	}
	resp.Body = &limitedBody{resp.Body, b.limit, b.limit}
	return resp, nil
}

// limitedBody returns an error where io.LimitReader would return io.EOF.
type limitedBody struct {
	io.ReadCloser
	limit, left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLarge(b.limit)
	}
	return n, err
}

// storeGetter reads from a store of package stores.
type storeGetter struct {
	only
	limit int64
}

// GetFile fetches a file.
func (g storeGetter) GetFile(ctx context.Context, req *getter.Request) error {
	body, err := stores.Files{}.Open(ctx, req.URL().String())
	if err != nil {
		return err
	}
	return writeTo(ctx, req.Dst, &limitedBody{body, g.limit, g.limit})
}

// fileGetter reads from this host's disk.
type fileGetter struct {
	only
	limit int64
}

// GetFile copies a file. It refuses named pipes, which would block, and links, which may lead anywhere.
func (g fileGetter) GetFile(ctx context.Context, req *getter.Request) error {
	stat, err := os.Lstat(req.URL().Path)
	if err != nil {
		return err
	}
	if !stat.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	f, err := walk.OpenFile(req.URL().Path)
	if err != nil {
		return err
	}
	return writeTo(ctx, req.Dst, &limitedBody{f, g.limit, g.limit})
}

// Get copies a directory.
func (g fileGetter) Get(ctx context.Context, req *getter.Request) error {
	stat, err := os.Stat(req.URL().Path)
	if err != nil {
		return err
	}
	if !stat.IsDir() {
		return errors.New("it is not a directory")
	}
	if err := inspect(req.URL().Path, g.limit); err != nil { // before the disk is filled
		return err
	}
	files, ok := os.DirFS(req.URL().Path).(fs.ReadLinkFS)
	if !ok {
		return errors.New("links cannot be read here")
	}
	return os.CopyFS(req.Dst, stoppableFS{files, ctx})
}

func writeTo(ctx context.Context, dst string, body io.ReadCloser) error {
	defer body.Close()
	f, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = getter.Copy(ctx, f, body)
	return errors.Join(err, f.Close())
}

// only has the methods that all these getters share. Each getter is the only one of its client.
type only struct{}

// Mode is not used, since every request has one.
func (only) Mode(context.Context, *url.URL) (getter.Mode, error) { return getter.ModeFile, nil }

// Detect accepts every request.
func (only) Detect(*getter.Request) (bool, error) { return true, nil }

// Get refuses a directory.
func (only) Get(context.Context, *getter.Request) error { return errors.New("it is not a directory") }

// GetFile refuses a file.
func (only) GetFile(context.Context, *getter.Request) error { return errors.New("it is not a file") }

// inspect returns an error for a tree that is too large, or with links that lead out of it.
func inspect(dir string, limit int64) error {
	left := limit
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return checkLink(dir, name)
		}
		stat, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			left -= stat.Size()
		}
		if left < 0 {
			return tooLarge(limit)
		}
		return nil
	})
}

func checkLink(dir, name string) error {
	target, err := os.Readlink(name)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(dir, filepath.Join(filepath.Dir(name), target))
	if filepath.IsAbs(target) || err != nil || !filepath.IsLocal(inside) {
		rel, _ := filepath.Rel(dir, name) // it is below dir
		return fmt.Errorf("the link %s leads out of the tree, to %s", rel, target)
	}
	return nil
}

// stoppableFS fails to open and read files once its context has ended, since os.CopyFS has no context.
type stoppableFS struct {
	fs.ReadLinkFS
	ctx context.Context
}

// Open implements fs.FS. Directories are returned unchanged, with all their methods.
func (s stoppableFS) Open(name string) (fs.File, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.ReadLinkFS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return f, nil
	}
	return stoppableFile{f, artifact.Stoppable(s.ctx, f)}, nil
}

type stoppableFile struct {
	fs.File
	reader io.Reader
}

// Read implements fs.File.
func (f stoppableFile) Read(p []byte) (int, error) { return f.reader.Read(p) }
