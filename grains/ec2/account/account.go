// Package account finds the AWS account of a host: its credentials, region and endpoints, for the AWS SDK's clients.
//
// It reads the same sources as the SDK's own config.LoadDefaultConfig, in the same order: the environment, the files
// ~/.aws/config and ~/.aws/credentials with their profiles, web identity, a role to assume, a program that prints
// credentials, the container, and the role of the instance. It leaves out the ways in which people sign in, IAM
// Identity Center (SSO) and `aws login`: the SDK's package config links the clients for these, whose tables are built
// whenever a program starts, and which add 1.1 MB to it.
package account

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Options are settings that take precedence. The zero value takes everything from the environment and the files.
type Options struct {
	Region   string       // overrides the environment and the files
	Profile  string       // overrides AWS_PROFILE; it has to exist
	Metadata *imds.Client // client for the role of the instance; nil for the usual one
}

// Load returns the configuration for the SDK's clients. It reads files and does not use the network: credentials are
// fetched when the first request is signed.
func Load(ctx context.Context, o Options) (aws.Config, error) {
	p, set, err := read(cmp.Or(o.Profile, os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE")))
	if err != nil {
		return aws.Config{}, err
	}
	cfg := aws.Config{
		Region: cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), p.section["region"]),
		Logger: logging.Nop{},
		// The clients read endpoints and other settings from it.
		ConfigSources:    []any{set},
		AppID:            set.get("sdk_ua_app_id"),
		RetryMode:        parse(set, "retry_mode", aws.ParseRetryMode),
		RetryMaxAttempts: parse(set, "max_attempts", strconv.Atoi),
		RequestChecksumCalculation: cmp.Or(parse(set, "request_checksum_calculation", requestChecksums),
			aws.RequestChecksumCalculationWhenSupported),
		ResponseChecksumValidation: cmp.Or(parse(set, "response_checksum_validation", responseChecksums),
			aws.ResponseChecksumValidationWhenSupported),
		DisableClockSkewCorrection: set.switches["disable_clock_skew_correction"],
		DefaultsMode:               cmp.Or(parse(set, "defaults_mode", defaultsMode), aws.DefaultsModeLegacy),
	}
	if at := set.get("endpoint_url"); at != "" && !set.switches["ignore_configured_endpoint_urls"] {
		cfg.BaseEndpoint = aws.String(at)
	}
	if set.invalid != nil {
		return aws.Config{}, set.invalid
	}
	if cfg.HTTPClient, err = authorities(set.get("ca_bundle")); err != nil {
		return aws.Config{}, err
	}
	c := &chain{cfg: cfg, metadata: o.Metadata}
	cfg.Credentials, err = c.credentials(ctx, o.Profile != "", p)
	return cfg, err
}

// read reads a profile of the files, and the settings in it and in the environment, such as endpoints. Without a name
// it reads the default profile, which may not exist.
func read(name string) (*profile, *settings, error) {
	all, err := sharedFiles()
	if err != nil {
		return nil, nil, err
	}
	if name == "" && all["default"] == nil {
		return &profile{name: "default"}, readSettings(nil, nil), nil
	}
	p, err := readProfile(all, cmp.Or(name, "default"), map[string]bool{})
	if err != nil {
		return nil, nil, err
	}
	return p, readSettings(p.section, all["services "+p.section["services"]]), nil
}

// authorities returns a client that trusts the certificate authorities in a file, which AWS_CA_BUNDLE or ca_bundle in
// the profile names; nil without a file.
func authorities(file string) (aws.HTTPClient, error) {
	if file == "" {
		return nil, nil
	}
	bundle, err := walk.ReadGiven(file)
	if err != nil {
		return nil, fmt.Errorf("reading AWS_CA_BUNDLE, or ca_bundle of the profile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bytes.TrimSpace(bundle)) {
		return nil, errors.New("the bundle of certificate authorities (AWS_CA_BUNDLE, ca_bundle) has no certificate in it")
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		t.TLSClientConfig.RootCAs = pool
	}), nil
}
