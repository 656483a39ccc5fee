// Package account finds out who a host is to AWS: its credentials, region and endpoints, for the AWS SDK's clients.
//
// It looks where the SDK's own config.LoadDefaultConfig does, in the same order: the environment, the files
// ~/.aws/config and ~/.aws/credentials with their profiles, web identity, a role to assume, a program that prints
// credentials, the container, and the role of the instance. It leaves out what only people sign in with, IAM Identity
// Center (SSO) and `aws login`: the SDK's clients for these are 0.8 MB of program.
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

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
)

// Options say what is known beforehand. The zero value asks the environment and the files for everything.
type Options struct {
	Region   string       // wins over the environment and the files
	Profile  string       // wins over AWS_PROFILE; it has to exist
	Metadata *imds.Client // of the instance, for its role; nil for the usual one
}

// Load gives the configuration for the SDK's clients. It reads files and asks nothing of a network: credentials are
// fetched when the first request is signed.
//
// An error of type config.SharedConfigProfileNotExistError says that a profile was asked for that is in no file.
func Load(ctx context.Context, o Options) (aws.Config, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, err
	}
	shared, err := profile(ctx, cmp.Or(o.Profile, env.SharedConfigProfile), env)
	if err != nil {
		return aws.Config{}, err
	}
	cfg := aws.Config{
		Region: cmp.Or(o.Region, env.Region, shared.Region),
		Logger: logging.Nop{},
		// The clients read endpoints, retries and the like from these.
		ConfigSources:              []any{env, shared},
		AppID:                      cmp.Or(env.AppID, shared.AppID),
		RetryMode:                  cmp.Or(env.RetryMode, shared.RetryMode),
		RetryMaxAttempts:           cmp.Or(env.RetryMaxAttempts, shared.RetryMaxAttempts),
		RequestChecksumCalculation: cmp.Or(env.RequestChecksumCalculation, shared.RequestChecksumCalculation, aws.RequestChecksumCalculationWhenSupported),
		ResponseChecksumValidation: cmp.Or(env.ResponseChecksumValidation, shared.ResponseChecksumValidation, aws.ResponseChecksumValidationWhenSupported),
		DisableClockSkewCorrection: aws.ToBool(cmp.Or(env.DisableClockSkewCorrection, shared.DisableClockSkewCorrection)),
		DefaultsMode:               mode(env, shared),
	}
	if !aws.ToBool(cmp.Or(env.IgnoreConfiguredEndpoints, shared.IgnoreConfiguredEndpoints)) {
		if at := cmp.Or(env.BaseEndpoint, shared.BaseEndpoint); at != "" {
			cfg.BaseEndpoint = aws.String(at)
		}
	}
	if cfg.HTTPClient, err = authorities(env, shared); err != nil {
		return aws.Config{}, err
	}
	c := &chain{cfg: cfg, env: env, metadata: o.Metadata}
	cfg.Credentials, err = c.credentials(ctx, o.Profile != "", &shared)
	return cfg, err
}

// profile reads a profile of the files, and what it refers to. Without a name it is the default one, which may be absent.
func profile(ctx context.Context, name string, env config.EnvConfig) (config.SharedConfig, error) {
	shared, err := config.LoadSharedConfigProfile(ctx, cmp.Or(name, config.DefaultSharedConfigProfile), func(o *config.LoadSharedConfigOptions) {
		if env.SharedConfigFile != "" {
			o.ConfigFiles = []string{env.SharedConfigFile}
		}
		if env.SharedCredentialsFile != "" {
			o.CredentialsFiles = []string{env.SharedCredentialsFile}
		}
	})
	var absent config.SharedConfigProfileNotExistError
	if name == "" && errors.As(err, &absent) {
		return config.SharedConfig{}, nil
	}
	return shared, err
}

// mode is the set of defaults of the SDK's clients. "auto" asks the SDK to find out where it runs, which is of use to
// programs outside of the region of their data alone: a host gets the defaults of a region.
func mode(env config.EnvConfig, shared config.SharedConfig) aws.DefaultsMode {
	switch m := cmp.Or(env.DefaultsMode, shared.DefaultsMode, aws.DefaultsModeLegacy); m {
	case aws.DefaultsModeAuto:
		return aws.DefaultsModeInRegion
	default:
		return m
	}
}

// authorities makes a client that trusts the certificate authorities of AWS_CA_BUNDLE, or of ca_bundle in the profile;
// nil where neither is set.
func authorities(env config.EnvConfig, shared config.SharedConfig) (aws.HTTPClient, error) {
	bundle := []byte(nil)
	switch {
	case env.CustomCABundle != "":
		data, err := os.ReadFile(env.CustomCABundle)
		if err != nil {
			return nil, fmt.Errorf("reading AWS_CA_BUNDLE: %w", err)
		}
		bundle = data
	case shared.CustomCABundle != "":
		data, err := os.ReadFile(shared.CustomCABundle)
		if err != nil {
			return nil, fmt.Errorf("reading ca_bundle of profile %s: %w", shared.Profile, err)
		}
		bundle = data
	default:
		return nil, nil
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
