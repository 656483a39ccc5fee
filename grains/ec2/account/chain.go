package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// chain finds credentials in the order of the SDK.
type chain struct {
	cfg      aws.Config // with the credentials found so far, which sign the request for a role's
	env      config.EnvConfig
	metadata *imds.Client
}

// credentials gives the first of: keys in the environment, web identity in the environment, and what the profile says.
// A profile that was named to the agent itself wins over the environment.
func (c *chain) credentials(ctx context.Context, named bool, shared *config.SharedConfig) (aws.CredentialsProvider, error) {
	provider, err := aws.CredentialsProvider(nil), error(nil)
	switch {
	case !named && c.env.Credentials.HasKeys():
		provider = credentials.StaticCredentialsProvider{Value: c.env.Credentials}
	case !named && c.env.WebIdentityTokenFilePath != "":
		provider, err = c.webIdentity(c.env.WebIdentityTokenFilePath, c.env.RoleARN, c.env.RoleSessionName)
	default:
		provider, err = c.ofProfile(ctx, shared)
	}
	if err != nil {
		return nil, err
	}
	return cached(provider), nil
}

// cached keeps credentials until they expire.
func cached(p aws.CredentialsProvider, options ...func(*aws.CredentialsCacheOptions)) aws.CredentialsProvider {
	if _, is := p.(*aws.CredentialsCache); is {
		return p
	}
	return aws.NewCredentialsCache(p, options...)
}

// ofProfile gives what a profile says, and the credentials of its role where it has one.
func (c *chain) ofProfile(ctx context.Context, p *config.SharedConfig) (aws.CredentialsProvider, error) {
	if p.WebIdentityTokenFile != "" && p.Source == nil && !p.Credentials.HasKeys() && p.CredentialSource == "" {
		return c.webIdentity(p.WebIdentityTokenFile, p.RoleARN, p.RoleSessionName) // the role is the identity's own
	}
	provider, err := c.base(ctx, p)
	if err != nil || p.RoleARN == "" {
		return provider, err
	}
	return c.assume(provider, p)
}

// base gives the credentials of a profile without its role.
func (c *chain) base(ctx context.Context, p *config.SharedConfig) (aws.CredentialsProvider, error) {
	switch {
	case p.Source != nil:
		return c.ofProfile(ctx, p.Source)
	case p.Credentials.HasKeys():
		return credentials.StaticCredentialsProvider{Value: p.Credentials}, nil
	case p.CredentialSource != "":
		return c.ofSource(ctx, p.CredentialSource)
	case p.SSOSessionName != "" || p.SSOAccountID != "" || p.SSOStartURL != "":
		return nil, c.people(p, "IAM Identity Center (SSO)")
	case p.LoginSession != "":
		return nil, c.people(p, "`aws login`")
	case p.CredentialProcess != "":
		return processcreds.NewProvider(p.CredentialProcess), nil
	}
	return c.ofMachine(ctx)
}

// people refuses a way to sign in that needs a person with a browser.
func (c *chain) people(p *config.SharedConfig, way string) error {
	name := cmp.Or(p.Profile, config.DefaultSharedConfigProfile)
	return diag.WithHint(fmt.Errorf("profile %s signs in with %s, which hosts do not do", name, way),
		"give the host a role, or a profile with role_arn or credential_process; `aws configure export-credentials` prints what a person's profile has")
}

// ofSource gives what credential_source names.
func (c *chain) ofSource(ctx context.Context, source string) (aws.CredentialsProvider, error) {
	switch source {
	case "Ec2InstanceMetadata":
		return c.instance(), nil
	case "Environment":
		return credentials.StaticCredentialsProvider{Value: c.env.Credentials}, nil
	case "EcsContainer":
		if p, err := c.container(ctx); p != nil || err != nil {
			return p, err
		}
		return nil, errors.New("credential_source is EcsContainer, and neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set")
	}
	return nil, fmt.Errorf("credential_source is %q, and there are EcsContainer, Ec2InstanceMetadata and Environment", source)
}

// ofMachine gives the credentials of the container, or else those of the instance.
func (c *chain) ofMachine(ctx context.Context) (aws.CredentialsProvider, error) {
	if p, err := c.container(ctx); p != nil || err != nil {
		return p, err
	}
	return c.instance(), nil
}

func (c *chain) instance() aws.CredentialsProvider {
	client := c.metadata
	if client == nil {
		client = imds.NewFromConfig(c.cfg)
	}
	return cached(ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = client }))
}

// container gives the credentials that ECS, EKS or a program on this host serves; nil where there is no such server.
func (c *chain) container(ctx context.Context) (aws.CredentialsProvider, error) {
	at := c.env.ContainerCredentialsEndpoint
	switch {
	case c.env.ContainerCredentialsRelativePath != "":
		at = "http://169.254.170.2" + c.env.ContainerCredentialsRelativePath
	case at == "":
		return nil, nil
	default:
		if err := checkServer(ctx, at); err != nil {
			return nil, fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI: %w", err)
		}
	}
	provider := endpointcreds.New(at, func(o *endpointcreds.Options) {
		o.AuthorizationToken = c.env.ContainerAuthorizationToken
		if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := os.ReadFile(file)
				if err != nil {
					return "", fmt.Errorf("reading AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
				}
				return string(token), nil
			})
		}
	})
	return cached(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = 5 * time.Minute }), nil
}

// containers are the addresses of ECS and EKS, where credentials go over plain HTTP.
func containers() []string { return []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"} }

// checkServer refuses a server of credentials that others on the network could stand for: with plain HTTP it has to be
// this host, or the one of ECS or EKS.
func checkServer(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return errors.New("it is not the URL of a server")
	}
	if u.Scheme != "http" {
		return nil
	}
	addresses := []string{u.Hostname()}
	if net.ParseIP(u.Hostname()) == nil {
		if addresses, err = net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
			return err
		}
	}
	for _, address := range addresses {
		ip := net.ParseIP(address)
		if ip == nil || !ip.IsLoopback() && !slices.ContainsFunc(containers(), func(c string) bool { return net.ParseIP(c).Equal(ip) }) {
			return fmt.Errorf("%s is neither this host nor a server of ECS or EKS, so it has to be https", u.Hostname())
		}
	}
	return nil
}

// webIdentity gives the credentials of a role for a token in a file, as Kubernetes hands them out.
func (c *chain) webIdentity(file, role, session string) (aws.CredentialsProvider, error) {
	if role == "" {
		return nil, diag.WithHint(fmt.Errorf("there is a token in %s and no role to use it for", file), "set AWS_ROLE_ARN, or role_arn in the profile")
	}
	return stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(c.cfg), role, stscreds.IdentityTokenFile(file),
		func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = session }), nil
}

// assume gives the credentials of a profile's role, asked for with those of its source.
func (c *chain) assume(with aws.CredentialsProvider, p *config.SharedConfig) (aws.CredentialsProvider, error) {
	if p.MFASerial != "" {
		return nil, diag.WithHint(fmt.Errorf("profile %s needs a one-time code of a person (mfa_serial)", p.Profile), "give the host a role that needs none")
	}
	cfg := c.cfg
	cfg.Credentials = cached(with)
	return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), p.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = p.RoleSessionName
		if p.RoleDurationSeconds != nil && *p.RoleDurationSeconds > 15*time.Minute {
			o.Duration = *p.RoleDurationSeconds
		}
		if p.ExternalID != "" {
			o.ExternalID = aws.String(p.ExternalID)
		}
	}), nil
}
