package source

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

type kind int

const (
	kindFile kind = iota
	kindWeb
	kindStore
	kindGit
)

// origin is a parsed URL of a source.
type origin struct {
	kind     kind
	url      *url.URL // without this package's options: checksum and ref
	checksum artifact.Digest
	ref      string  // of git
	commit   *Commit // of git: gets the commit that was fetched
}

// shown returns the URL for messages, without its query, which may contain credentials.
func (o origin) shown() string { return show(o.url) }

func show(u *url.URL) string {
	c := *u
	c.RawQuery, c.Fragment = "", ""
	return redact.URLs(c.String())
}

// parse parses a URL. It returns an error for a URL that go-getter could interpret differently.
func parse(rawURL string) (origin, error) {
	rest, git := strings.CutPrefix(rawURL, "git::")
	u, err := url.Parse(rest)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return origin{}, diag.Source.Hint(errors.New("the source is not a URL"),
			"write https://host/file, file:///path, s3://bucket/file, git::https://host/repository.git or "+
				"git::ssh://git@host/repository.git")
	}
	o := origin{kind: kindOf(u, git), url: u}
	if o.kind < 0 {
		return origin{}, diag.Source.Hint(fmt.Errorf("source %s: there is no such kind of source", show(u)),
			"%s", instead(u.Scheme))
	}
	if err := o.takeOptions(); err != nil {
		return origin{}, fmt.Errorf("source %s: %w", o.shown(), err)
	}
	if err := o.safe(); err != nil {
		return origin{}, fmt.Errorf("source %s: %w", o.shown(), err)
	}
	return o, nil
}

func instead(scheme string) string {
	if scheme == "ssh" {
		return "write git::ssh:// for a repository"
	}
	known := []string{"https", "http", "file", "s3", "minio"}
	if did := diag.DidYouMean(scheme, known); did != "" {
		return did
	}
	return "there are: " + strings.Join(known, ", ") + ", and git:: before https, ssh or file"
}

func kindOf(u *url.URL, git bool) kind {
	web := u.Scheme == "https" || u.Scheme == "http"
	switch {
	case git && (web || u.Scheme == "ssh" || u.Scheme == "file"):
		return kindGit
	case git:
		return -1
	case web && strings.HasSuffix(u.Path, ".git"):
		return kindGit
	case web:
		return kindWeb
	case u.Scheme == "file":
		return kindFile
	case u.Scheme == "s3" || u.Scheme == "minio":
		return kindStore
	}
	return -1
}

var refName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/@+-]*$`) })

// takeOptions removes this package's options from the URL.
func (o *origin) takeOptions() error {
	query := o.url.Query()
	if sum := query.Get("checksum"); sum != "" {
		digest, err := artifact.ParseDigest(sum)
		if err != nil {
			return err
		}
		o.checksum = digest
	}
	query.Del("checksum")
	if o.kind == kindGit {
		o.ref = query.Get("ref")
		query.Del("ref")
		if o.ref != "" && !refName().MatchString(o.ref) {
			return fmt.Errorf("%q is not the name of a branch, a tag or a commit", o.ref)
		}
		if len(query) > 0 {
			return diag.Source.Hint(errors.New("the URL of a repository takes no option but ref"),
				"keys for ssh belong to the ssh agent")
		}
	}
	if slices.ContainsFunc([]string{"archive", "filename"}, query.Has) {
		return errors.New("archive and filename are not options here: a file is fetched as it is")
	}
	o.url.RawQuery = query.Encode()
	return nil
}

// safe returns an error for URLs with logins, and for content that could be changed on the network.
func (o *origin) safe() error {
	if _, password := o.url.User.Password(); password || o.url.User != nil && o.url.Scheme != "ssh" {
		return diag.Source.Hint(errors.New("it holds credentials, which would be remembered and shown"),
			"for git use ssh://git@host/ with an ssh agent, or a git credential helper")
	}
	if o.url.Scheme == "http" && o.checksum == "" && !loopback(o.url.Hostname()) {
		return diag.Source.Hint(errors.New("anyone on the way could change what comes over plain HTTP"),
			"use https://, or add ?checksum=sha256:...")
	}
	if o.kind != kindGit && strings.Contains(o.url.Path, "//") {
		return errors.New("a double slash names a directory of a repository, and here there is none")
	}
	if o.url.Scheme == "file" && o.url.Host != "" {
		return diag.Source.Hint(errors.New("a file is on no host"), "write three slashes: file:///%s%s", o.url.Host,
			o.url.Path)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// getter returns the getter for this origin.
func (o origin) getter(limit int64) getter.Getter {
	switch o.kind {
	case kindWeb:
		return webGetter(o.shown(), limit)
	case kindStore:
		return storeGetter{limit: limit}
	case kindGit:
		return gitGetter{ref: o.ref, got: o.commit}
	}
	return fileGetter{limit: limit}
}
