package s3

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/grains/ec2/account"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// client is the configured client of the SDK.
type client struct {
	*s3.Client
	credentials *credentials
}

// client configures the SDK for the first request. A failure is not remembered, since metadata services may start late
// at boot.
func (s *Store) client(ctx context.Context, call *wire.Call) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.api != nil {
		return s.api, nil
	}
	load := s.opts.Account
	if load == nil {
		load = host
	}
	cfg, err := load(ctx, s.opts.Region, s.opts.Profile)
	if err != nil {
		return nil, call.Credentials(err, cmp.Or(diag.HintOf(err), "check the AWS_* environment and ~/.aws/config"))
	}
	creds := &credentials{inner: cfg.Credentials}
	api := &client{credentials: creds, Client: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.Credentials = creds
		o.HTTPClient = listening(cfg.HTTPClient)
		s.place(o)
	})}
	if api.Options().Region == "" {
		if cfg.Region = regionOf(ctx, cfg); cfg.Region == "" {
			return nil, call.Unusable(errors.New("no region is known"), "add ?region= to the store's URL, or set AWS_REGION")
		}
		api.Client = s3.New(api.Options(), func(o *s3.Options) { o.Region = cfg.Region })
	}
	s.api = api
	return api, nil
}

// Account returns the credentials, region and endpoints for a bucket. Region and profile are those of the store's URL,
// or "".
type Account func(ctx context.Context, region, profile string) (aws.Config, error)

// host is the Account of a host, on which no user signs in.
func host(ctx context.Context, region, profile string) (aws.Config, error) {
	return account.Load(ctx, account.Options{Region: region, Profile: profile})
}

// place sets the server's address and the features that it supports. Servers other than AWS seldom support checksums in
// trailers, and accept any region.
func (s *Store) place(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableLogOutputChecksumValidationSkipped = true
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // trust checks digests
	if s.opts.Endpoint != "" {
		o.BaseEndpoint = aws.String(s.opts.Endpoint)
	}
	if o.BaseEndpoint != nil {
		o.UsePathStyle = true
		if os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		if o.Region == "" {
			o.Region = "us-east-1"
		}
	}
	if s.opts.PathStyle != nil {
		o.UsePathStyle = *s.opts.PathStyle
	}
}

// regionOf returns the region of the instance from its metadata; its buckets are most likely there too.
func regionOf(ctx context.Context, cfg aws.Config) string {
	out, err := imds.NewFromConfig(cfg).GetRegion(ctx, nil)
	if err != nil {
		return ""
	}
	return out.Region
}

// listening returns an HTTP client for S3 whose transport reports to calls. It keeps the SDK's settings, such as a
// bundle of authorities from the environment, and leaves the SDK's own transport unchanged for metadata and sign-in.
func listening(sdk aws.HTTPClient) *http.Client {
	buildable, ok := sdk.(*awshttp.BuildableClient)
	if !ok {
		buildable = awshttp.NewBuildableClient()
	}
	transport := buildable.GetTransport()
	wire.Tune(transport)
	return &http.Client{
		Transport: wire.Listen(wire.Authorities(transport,
			func(t *http.Transport) http.RoundTripper { return t })),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// credentials are the SDK's, with errors of a separate type.
type credentials struct{ inner aws.CredentialsProvider }

type noCredentials struct{ err error }

func (e *noCredentials) Error() string { return e.err.Error() }

// Retrieve returns the credentials to sign with.
func (c *credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if c.inner == nil {
		return aws.Credentials{}, &noCredentials{errors.New("there are none")}
	}
	value, err := c.inner.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, &noCredentials{err}
	}
	wire.Hide(ctx, value.SecretAccessKey, value.SessionToken)
	return value, nil
}

// forget makes the next request fetch new credentials.
func (c *credentials) forget() {
	if cache, ok := c.inner.(*aws.CredentialsCache); ok {
		cache.Invalidate()
	}
}
