// Package minio describes stores on a MinIO server, or on another S3 server outside AWS.
//
// In contrast to package s3, whose client makes the requests, a store is configured by the host and port of a server and
// MINIO_ACCESS_KEY, without region or profile, and nothing of AWS's environment moves it to another server.
package minio

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options are the location of the objects. Host and Bucket are required.
type Options struct {
	Host   string // host:port, or only the host for the scheme's default port
	Bucket string
	Prefix string // prepended to every key, with a slash; may be empty
	Region string // default us-east-1, which MinIO accepts unless it is configured otherwise
	Plain  bool   // HTTP instead of HTTPS

	Client *awshttp.BuildableClient // nil means the SDK's own
}

// New returns a store. It neither reads files nor connects.
func New(opts Options) *s3.Store {
	inPath := true
	return s3.New(s3.Options{
		Name: "minio://" + opts.Host + "/" + opts.Bucket, Bucket: opts.Bucket, Prefix: opts.Prefix,
		Endpoint: opts.server(), PathStyle: &inPath, Plainly: true, Account: opts.account,
	})
}

// server returns the URL of the server.
func (o Options) server() string {
	if o.Plain {
		return "http://" + o.Host
	}
	return "https://" + o.Host
}

// account returns the credentials for the server. Asking it for its region would take another request and another
// permission.
func (o Options) account(context.Context, string, string) (aws.Config, error) {
	found, err := findKeys(o)
	if err != nil {
		return aws.Config{}, diag.WithHint(err, "%s", whence)
	}
	cfg := aws.Config{Region: cmp.Or(o.Region, "us-east-1"), Credentials: found}
	if o.Client != nil {
		cfg.HTTPClient = o.Client
	}
	return cfg, nil
}

// Retrieve returns the keys to sign with.
func (k keys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: k.access, SecretAccessKey: k.secret, SessionToken: k.token, Source: "minio"}, nil
}
