package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cached implements file.cached: it fetches a file into the cache. For a file of the host it only compares the
// hash.
type cached struct {
	sourced
	Name string `sls:"name"`

	family *family
	origin origin
	place  string
}

// cachePlace returns the path at which a URL is cached.
func (f *family) cachePlace(url, env string) string {
	where := url
	if i := strings.Index(url, "://"); i >= 0 {
		where = url[i+len("://"):]
	}
	where, _, _ = strings.Cut(where, "?")
	kind := "extrn_files"
	if strings.HasPrefix(url, "salt://") {
		kind = "files"
	}
	return path.Join(f.Cache, kind, path.Join("/", env), path.Join("/", withoutDotDot(where)))
}

// withoutDotDot escapes the ".." elements of a path. Otherwise a URL could be cached at the path of another server's
// file.
func withoutDotDot(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if part == ".." {
			parts[i] = "%2E%2E"
		}
	}
	return strings.Join(parts, "/")
}

// local returns the path that a URL denotes if it is a file of the host itself.
func local(url string) (string, bool) {
	if p, ok := strings.CutPrefix(url, "file://"); ok {
		return p, true
	}
	return url, !isURL(url)
}

func (c *cached) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: c.sourced.warnings()}
	c.Source = c.Name
	var err error
	if c.origin, err = c.family.origin(ctx, c.sourced, c.Name); err != nil {
		return d, err
	}
	if p, ok := local(c.Name); ok {
		return c.checkLocal(ctx, h, d, p)
	}
	c.place = c.family.cachePlace(c.Name, c.origin.env)
	a := c.origin.sum.algorithm
	if !c.origin.sum.known() {
		a, _ = algorithmBy(func(a algorithm) bool { return a.name == "sha256" })
	}
	old := any(nil)
	if isFile(h, c.place) {
		was, err := sumOfFile(ctx, h, c.place, a)
		if err != nil {
			return d, err
		}
		old = was.hex
	}
	will := c.origin.sum
	if !will.known() {
		if will, err = c.hash(ctx, a); err != nil {
			return d, err
		}
	}
	if old == will.hex {
		d.Comment = c.place + " is as it should be"
		return d, nil
	}
	d.Changes = value.NewMap("hash", value.NewMap("old", old, "new", will.hex))
	d.Comment = fmt.Sprintf("would fetch %s to %s", redact.URLs(c.Name), c.place)
	return d, nil
}

// hash reads the whole source and returns its hash.
func (c *cached) hash(ctx context.Context, a algorithm) (sum, error) {
	source, err := c.family.open(ctx, c.origin)
	if err != nil {
		return sum{}, err
	}
	defer source.Close()
	return sum{algorithm: a}.of(source)
}

func (c *cached) checkLocal(ctx context.Context, h *host.Host, d module.Diff, p string) (module.Diff, error) {
	p, err := absolute(h, "name", p)
	if err != nil {
		return d, err
	}
	if !isFile(h, p) {
		return d, lackingFile(fmt.Errorf("%s does not exist", p), p)
	}
	if c.origin.sum.known() {
		is, err := sumOfFile(ctx, h, p, c.origin.sum.algorithm)
		if err == nil && is.hex != c.origin.sum.hex {
			err = mismatch(p, c.origin.sum, is)
		}
		if err != nil {
			return d, err
		}
	}
	d.Comment = p + " is there"
	return d, nil
}

func (c *cached) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	source, err := c.family.open(ctx, c.origin)
	if err != nil {
		return module.Report{}, err
	}
	defer source.Close()
	if err := parents(h, c.place, unchanged()); err != nil {
		return module.Report{}, err
	}
	mode := fs.FileMode(0o600)
	if err := h.Files.Write(c.place, host.NewFile{Content: io.Reader(source), Mode: &mode, UID: -1, GID: -1}); err != nil {
		return module.Report{}, fmt.Errorf("fetching %s: %w", redact.URLs(c.Name), err)
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("fetched %s to %s", redact.URLs(c.Name), c.place)}, nil
}

// notCached implements file.not_cached: it removes a file from the cache.
type notCached struct {
	environment
	Name string `sls:"name"`

	family *family
	place  string
}

func (c *notCached) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if c.Name == "" {
		return module.Diff{}, errors.New("name is empty")
	}
	if p, ok := local(c.Name); ok {
		return module.Diff{Comment: p + " is a file of the host and not in the cache"}, nil
	}
	c.place = c.family.cachePlace(c.Name, c.environment.name())
	if !isFile(h, c.place) {
		return module.Diff{Comment: redact.URLs(c.Name) + " is not cached"}, nil
	}
	return module.Diff{Changes: value.NewMap("deleted", true), Comment: "would remove " + c.place}, nil
}

func (c *notCached) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.Remove(c.place); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "removed " + c.place}, nil
}
