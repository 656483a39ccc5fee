// Package stores opens a store by its URL, as operators write it:
//
//	file:///srv/store                    a directory
//	s3://bucket/prefix                   S3, with the usual credentials of AWS tools
//	    ?region=eu-west-1                the bucket's region
//	    ?profile=deploy                  a profile of ~/.aws/config
//	    ?endpoint=https://host:9000      another S3 server
//	    ?path-style=1                    the bucket in the path, not in the host name
//	minio://host:9000/bucket/prefix      MinIO and similar servers, with MINIO_ACCESS_KEY and so on
//	    ?tls=0                           plain HTTP
//	    ?region=name                     the region that the server is configured with
//	https://host/path                    a web server, read-only
//	http://127.0.0.1:8080/path           the same on this host, for tests and tunnels
//	    ?insecure=1                      over the network too: signatures still protect what is
//	                                     read, but others on the network can see it
//
// A URL contains no credentials: it is remembered, logged and shown, so a URL with a password is
// refused.
package stores

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options are the settings of the decorators around a store; see store.Settings.
type Options = store.Settings

// Open returns the store at a URL with the usual decorators. It only checks the URL: it reads no files and
// does not connect before the first request.
func Open(rawURL string, opts Options) (store.Store, error) { return OpenAs(rawURL, opts, nil) }

// OpenAs is like Open for a program that finds its AWS account in another way; nil means the way of hosts.
func OpenAs(rawURL string, opts Options, account s3.Account) (store.Store, error) {
	s, err := bare(rawURL, account)
	if err != nil {
		return nil, err
	}
	opts.Timeout.Name = base(rawURL)
	return store.Stack(s, opts), nil
}

// base returns the URL of a store without options, which precedes the keys in messages.
func base(rawURL string) string {
	name, _, _ := strings.Cut(Display(rawURL), "?")
	return name
}

// Host returns the name of the host that a store's objects come from: a server, or a bucket of AWS instead of
// one. It returns "" for a directory.
func Host(rawURL string) string {
	a, err := parse(rawURL)
	if err != nil {
		return ""
	}
	if endpoint, err := url.Parse(a.query.Get("endpoint")); err == nil && endpoint.Host != "" {
		return endpoint.Host
	}
	return a.url.Host
}

// scheme is a kind of store.
type scheme struct {
	name    string
	options []string
	open    func(address) (store.Store, error)
}

// schemes returns all kinds of stores.
func schemes() []scheme {
	return []scheme{
		{"file", nil, openDir},
		{"s3", []string{"region", "profile", "endpoint", "path-style"}, openS3},
		{"minio", []string{"tls", "region"}, openMinio},
		{"https", []string{"private_redirects"}, openWeb},
		{"http", []string{"insecure", "private_redirects"}, openWeb},
	}
}

func bare(rawURL string, account s3.Account) (store.Store, error) {
	a, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	a.account = account
	s, err := a.scheme.open(a)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", Display(rawURL), err)
	}
	return s, nil
}

func openDir(a address) (store.Store, error) {
	if a.url.Host != "" && a.url.Host != "localhost" {
		return nil, diag.StoreURL.Hint(fmt.Errorf("a directory is on no host, and here %q is one", a.url.Host),
			"write three slashes: file:///%s%s", a.url.Host, a.url.Path)
	}
	if a.url.Path == "" || a.url.Path == "/" {
		return nil, diag.StoreURL.Hint(errors.New("the directory is missing"), "write file:///srv/store")
	}
	return dir.New(path.Clean(a.url.Path)), nil
}

func openS3(a address) (store.Store, error) {
	if a.url.Hostname() == "" || a.url.Port() != "" {
		return nil, diag.StoreURL.Hint(errors.New("the bucket is missing"),
			"write s3://bucket/prefix; a server goes into ?endpoint=https://host:port")
	}
	pathStyle, given, err := a.flag("path-style")
	if err != nil {
		return nil, err
	}
	start, err := prefix(a.url.Path)
	if err != nil {
		return nil, err
	}
	opts := s3.Options{
		Bucket: a.url.Host, Prefix: start,
		Region: a.query.Get("region"), Profile: a.query.Get("profile"), Endpoint: a.query.Get("endpoint"), Account: a.account,
	}
	if given {
		opts.PathStyle = &pathStyle
	}
	if opts.Endpoint != "" {
		if err := checkEndpoint(opts.Endpoint); err != nil {
			return nil, err
		}
	}
	return s3.New(opts), nil
}

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return diag.StoreURL.Hint(errors.New("the endpoint is not the URL of a server"), "write ?endpoint=https://host:port")
	}
	return nil
}

func openMinio(a address) (store.Store, error) {
	bucket, rest, _ := strings.Cut(strings.TrimPrefix(a.url.Path, "/"), "/")
	if a.url.Hostname() == "" || bucket == "" {
		return nil, diag.StoreURL.Hint(errors.New("the host or the bucket is missing"),
			"write minio://host:port/bucket/prefix")
	}
	tls, given, err := a.flag("tls")
	if err != nil {
		return nil, err
	}
	start, err := prefix(rest)
	if err != nil {
		return nil, err
	}
	return minio.New(minio.Options{
		Host: a.url.Host, Bucket: bucket, Prefix: start, Region: a.query.Get("region"), Plain: given && !tls,
	}), nil
}

func openWeb(a address) (store.Store, error) {
	if a.url.Hostname() == "" {
		return nil, diag.StoreURL.Hint(errors.New("the host is missing"), "write https://host/path")
	}
	insecure, _, err := a.flag("insecure")
	if err != nil {
		return nil, err
	}
	if a.scheme.name == "http" && !insecure && !loopback(a.url.Hostname()) {
		return nil, diag.StoreURL.Hint(errors.New("plain HTTP shows others on the network what this host deploys"),
			"use https://, or add ?insecure=1 if that is acceptable: signatures are checked either way")
	}
	private, _, err := a.flag("private_redirects")
	if err != nil {
		return nil, err
	}
	base := *a.url
	base.RawQuery = ""
	return web.New(&base, web.Options{Private: private}), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// known returns the names of all kinds of stores.
func known() []string {
	names := []string{}
	for _, s := range schemes() {
		names = append(names, s.name)
	}
	return names
}
