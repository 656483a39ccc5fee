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
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// chain finds credentials in the order of the SDK.
type chain struct {
	cfg      aws.Config // with the credentials found so far, which sign the request for those of a role
	metadata *imds.Client
}

// credentials returns the first of: keys in the environment, web identity in the environment, and those of the profile.
// A profile that was passed to the agent itself takes precedence over the environment.
func (c *chain) credentials(ctx context.Context, named bool, p *profile) (aws.CredentialsProvider, error) {
	provider, err := aws.CredentialsProvider(nil), error(nil)
	switch {
	case !named && environment().HasKeys():
		provider = credentials.StaticCredentialsProvider{Value: environment()}
	case !named && os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		provider, err = c.webIdentity(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), os.Getenv("AWS_ROLE_ARN"),
			os.Getenv("AWS_ROLE_SESSION_NAME"))
	default:
		provider, err = c.ofProfile(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return cached(provider), nil
}

// environment returns the access keys of the environment.
func environment() aws.Credentials {
	return aws.Credentials{
		AccessKeyID:     cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_ACCESS_KEY")),
		SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SECRET_KEY")),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"), AccountID: os.Getenv("AWS_ACCOUNT_ID"), Source: "environment",
	}
}

// cached returns a provider that keeps credentials until they expire.
func cached(p aws.CredentialsProvider, options ...func(*aws.CredentialsCacheOptions)) aws.CredentialsProvider {
	if _, is := p.(*aws.CredentialsCache); is {
		return p
	}
	return aws.NewCredentialsCache(p, options...)
}

// ofProfile returns the credentials of a profile, or those of its role if it has one.
func (c *chain) ofProfile(ctx context.Context, p *profile) (aws.CredentialsProvider, error) {
	if file := p.section["web_identity_token_file"]; file != "" && p.source == nil && !p.keys().HasKeys() {
		return c.webIdentity(file, p.section["role_arn"], p.section["role_session_name"]) // the role of the identity
	}
	provider, err := c.base(ctx, p)
	if err != nil || p.section["role_arn"] == "" {
		return provider, err
	}
	return c.assume(provider, p)
}

// base returns the credentials of a profile without its role.
func (c *chain) base(ctx context.Context, p *profile) (aws.CredentialsProvider, error) {
	switch {
	case p.source != nil:
		return c.ofProfile(ctx, p.source)
	case p.keys().HasKeys():
		return credentials.StaticCredentialsProvider{Value: p.keys()}, nil
	case p.section["credential_source"] != "":
		return c.ofSource(ctx, p.section["credential_source"])
	case p.person():
		return nil, people(p)
	case p.section["credential_process"] != "":
		command := p.section["credential_process"]
		return processcreds.NewProvider(command), checkProcess(command)
	}
	return c.ofMachine(ctx)
}

// people returns an error for a profile with which a person has to sign in with a browser.
func people(p *profile) error {
	way := "IAM Identity Center (SSO)"
	if p.section["login_session"] != "" {
		way = "`aws login`"
	}
	return diag.Credentials.Hint(fmt.Errorf("profile %s signs in with %s, which hosts do not do", p.name, way),
		"give the host a role, or a profile with role_arn or credential_process; `aws configure export-credentials` prints "+
			"the keys of a person's profile")
}

// ofSource returns the credentials of the source in credential_source.
func (c *chain) ofSource(ctx context.Context, source string) (aws.CredentialsProvider, error) {
	switch source {
	case "Ec2InstanceMetadata":
		return c.instance(), nil
	case "Environment":
		return credentials.StaticCredentialsProvider{Value: environment()}, nil
	case "EcsContainer":
		if p, err := c.container(ctx); p != nil || err != nil {
			return p, err
		}
		return nil,
			errors.New("credential_source is EcsContainer, and neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor " +
				"AWS_CONTAINER_CREDENTIALS_FULL_URI is set")
	}
	return nil, fmt.Errorf("credential_source is %q, and there are EcsContainer, Ec2InstanceMetadata and Environment",
		source)
}

// ofMachine returns the credentials of the container, or else those of the instance.
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

// container returns the credentials that ECS, EKS or a program on this host serves; nil if there is no such server.
func (c *chain) container(ctx context.Context) (aws.CredentialsProvider, error) {
	at, path := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	switch {
	case path != "":
		at = "http://169.254.170.2" + path
	case at == "":
		return nil, nil
	default:
		if err := checkServer(ctx, at); err != nil {
			return nil, fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI: %w", err)
		}
	}
	provider := endpointcreds.New(at, func(o *endpointcreds.Options) {
		o.AuthorizationToken = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = tokenIn(file)
		}
	})
	return cached(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = 5 * time.Minute }), nil
}

// tokenIn reads the token for the container's server from a file whenever credentials are fetched.
func tokenIn(file string) endpointcreds.TokenProviderFunc {
	return func() (string, error) {
		token, err := walk.ReadGiven(file)
		if err != nil {
			return "", fmt.Errorf("reading AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		return string(token), nil
	}
}

// containers returns the addresses of ECS and EKS, which serve credentials over plain HTTP.
func containers() []string { return []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"} }

// checkServer returns an error for a server of credentials that others on the network could impersonate: with plain
// HTTP it has to be this host, or that of ECS or EKS.
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
		if ip == nil || !ip.IsLoopback() && !slices.ContainsFunc(containers(),
			func(c string) bool { return net.ParseIP(c).Equal(ip) }) {
			return fmt.Errorf("%s is neither this host nor a server of ECS or EKS, so it has to be https", u.Hostname())
		}
	}
	return nil
}

// webIdentity returns the credentials of a role for a token in a file, as Kubernetes provides them.
func (c *chain) webIdentity(file, role, session string) (aws.CredentialsProvider, error) {
	if role == "" {
		return nil, diag.Credentials.Hint(fmt.Errorf("there is a token in %s and no role to use it for", file),
			"set AWS_ROLE_ARN, or role_arn in the profile")
	}
	return stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(c.cfg), role, stscreds.IdentityTokenFile(file),
		func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = session }), nil
}

// assume returns the credentials of a profile's role, requested with those of its source.
func (c *chain) assume(with aws.CredentialsProvider, p *profile) (aws.CredentialsProvider, error) {
	if p.section["mfa_serial"] != "" {
		return nil, diag.Credentials.Hint(fmt.Errorf("profile %s needs a one-time code of a person (mfa_serial)", p.name),
			"give the host a role that needs none")
	}
	cfg := c.cfg
	cfg.Credentials = cached(with)
	return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), p.section["role_arn"],
		func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = p.section["role_session_name"]
			if seconds, err := strconv.Atoi(p.section["duration_seconds"]); err == nil && seconds > 15*60 {
				o.Duration = time.Duration(seconds) * time.Second
			}
			if id := p.section["external_id"]; id != "" {
				o.ExternalID = aws.String(id)
			}
		}), nil
}
