package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// environment holds the environment of salt:// URLs.
type environment struct {
	Env     string `sls:"__env__"`
	Saltenv string `sls:"saltenv"`
}

func (e environment) name() string {
	switch {
	case e.Saltenv != "":
		return e.Saltenv
	case e.Env != "":
		return e.Env
	}
	return "base"
}

// sourced holds the arguments that name a source.
type sourced struct {
	environment
	Source         any    `sls:"source"`
	SourceHash     string `sls:"source_hash"`
	SourceHashName string `sls:"source_hash_name"`
	SkipVerify     bool   `sls:"skip_verify"`
	KeepSource     any    `sls:"keep_source"` // no effect: no source is cached
	UseETag        bool   `sls:"use_etag"`
	VerifySSL      *bool  `sls:"verify_ssl"`
}

func (s sourced) warnings() []string {
	if s.VerifySSL != nil && !*s.VerifySSL {
		return []string{"verify_ssl: False is not supported; certificates are always verified"}
	}
	return nil
}

// origin is the source that was chosen, and its expected hash.
type origin struct {
	url string
	env string
	sum sum
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// onHost returns the path of a source that is a file of the host.
func onHost(url string) (p string, on bool) {
	p = strings.TrimPrefix(url, "file://")
	return p, strings.HasPrefix(p, "/")
}

// remote reports whether content comes from the network. The run verifies salt:// URLs itself.
func remote(url string) bool {
	return isURL(url) && !strings.HasPrefix(url, "salt://") && !strings.HasPrefix(url, "file://")
}

// origin returns the source to use and its expected hash. name is the path of the managed file.
func (f *family) origin(ctx context.Context, s sourced, name string) (origin, error) {
	url, hash, err := f.choose(ctx, s)
	if err != nil {
		return origin{}, err
	}
	o := origin{url: url, env: s.name()}
	if err := knownScheme(url); err != nil {
		return o, err
	}
	switch {
	case strings.HasPrefix(url, "salt://") || s.SkipVerify:
		return o, nil
	case hash != "":
		o.sum, err = f.sumOf(ctx, hash, s.SourceHashName, name, url, o.env)
		return o, err
	case remote(url) && !s.UseETag:
		return o, diag.Download.Hint(fmt.Errorf("%s has no source_hash, so it cannot be verified", redacted(url)),
			"set source_hash, or skip_verify: True")
	}
	return o, nil
}

// knownScheme returns an error for a URL of a kind that no source has.
func knownScheme(url string) error {
	known := []string{"salt", "file", "http", "https", "s3", "minio"}
	scheme, _, is := strings.Cut(url, "://")
	if !is || slices.Contains(known, strings.ToLower(scheme)) {
		return nil
	}
	return diag.Download.Hint(fmt.Errorf("%s: there is no kind of source called %q", redacted(url), scheme), "%s",
		cmp.Or(diag.DidYouMean(scheme, known), "there are: "+strings.Join(known, ", ")))
}

// choose returns the only source, or the first of several that exists. An item of a list can have its own hash.
func (f *family) choose(ctx context.Context, s sourced) (url, hash string, err error) {
	list, ok := s.Source.(*value.List)
	if !ok {
		return value.Str(s.Source), s.SourceHash, nil
	}
	var urls, hashes []string
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			urls, hashes = append(urls, value.Str(item)), append(hashes, s.SourceHash)
			continue
		}
		for url, hash := range m.All() {
			if !value.Truth(hash) {
				hash = s.SourceHash
			}
			urls, hashes = append(urls, value.Str(url)), append(hashes, value.Str(hash))
		}
	}
	i, err := f.Sources.First(ctx, urls, s.name())
	if errors.Is(err, fs.ErrNotExist) {
		none := diag.Download.Hint(fmt.Errorf("none of the sources is there: %s", strings.Join(redactedAll(urls), ", ")),
			lookAtTree, s.name())
		for _, url := range urls {
			if p, on := onHost(url); on {
				none = host.Gone(p, none)
			}
		}
		return "", "", none
	}
	if err != nil {
		return "", "", fmt.Errorf("looking for a source: %w", err)
	}
	return urls[i], hashes[i], nil
}

// lookAtTree is the hint for a file that is missing in the state tree of an environment.
const lookAtTree = "correct the path, or put the file into the state tree of environment %s; `corpus-agent call " +
	"cp.list_master` lists its files"

// redacted returns a URL without its user name and password.
func redacted(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); ok && at >= 0 {
		return scheme + "://" + host[at+1:] + "/" + path
	}
	return url
}

func redactedAll(urls []string) []string {
	out := make([]string, len(urls))
	for i, u := range urls {
		out[i] = redacted(u)
	}
	return out
}

// open opens an origin. Reading fails at the end of the content if its hash is wrong.
func (f *family) open(ctx context.Context, o origin) (Source, error) {
	source, err := f.Sources.Open(ctx, o.url, o.env)
	if errors.Is(err, fs.ErrNotExist) {
		return source, diag.Download.Hint(fmt.Errorf("the source %s does not exist: %w", redacted(o.url), err),
			lookAtTree, o.env)
	}
	if err != nil {
		return source, fmt.Errorf("opening the source %s: %w", redacted(o.url), err)
	}
	source.content = verified(host.Bounded(ctx, source.ReadCloser), redacted(o.url), o.sum)
	source.ReadCloser = struct {
		io.Reader
		io.Closer
	}{source.content, source.ReadCloser}
	return source, nil
}
