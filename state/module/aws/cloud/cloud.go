// Package cloud has what all states of AWS need: access to an account, answers that are kept during a run, and the plan
// of a resource. It uses the SDK of AWS for Go.
//
// Every state reads its resource, notes in a Plan each field that differs with the request that corrects it, and sends
// these requests only in a run, so that a dry run shows what a run does. A state may refer to a resource that another
// state makes, such as a security group, whose ID is not known before. Account.Expect therefore notes the resources
// that a run makes, so that a dry run can plan what depends on them.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Cloud has the settings with which all states of a run reach AWS, and the accounts that they use.
type Cloud struct {
	// Setting returns an option of the minion's configuration or of the pillar, such as a profile, or nil if there is
	// none.
	Setting func(name string) any
	// Endpoint is the URL of a server that is asked instead of AWS, or "" for AWS.
	Endpoint string
	// Bootstrap returns the user data with which a host deploys itself, from the settings of `corpus bootstrap`. It may
	// be nil.
	Bootstrap func(settings *value.Map) (string, error)
	// Source returns the content of a file of the tree, by its salt:// URL. It may be nil.
	Source func(ctx context.Context, url, env string) ([]byte, error)
	// Secret receives the secrets of requests, such as passwords and private keys. It may be nil.
	Secret func(secrets ...string)
	// Agreed are the removals, as Removals returns them, that a person agreed to; others fail. If it is nil, all may be
	// done.
	Agreed map[string]bool
	// APIOptions are middleware for the requests of all clients. Tests use them to answer requests.
	APIOptions []func(*middleware.Stack) error

	mu       sync.Mutex
	accounts map[access]*Account
	memories map[place]*memory
	secrets  map[string]string  // by path: the key whose secret half the run writes there
	declared map[string]*Common // by the resource: the state that declares it
	removed  map[string]bool    // by the text of a removal: it was planned
	nonce    string             // what tells the requests of this run from those of other runs
	answered atomic.Bool        // whether AWS, or the server at Endpoint, has answered a request
}

// access says how an account of AWS is reached.
type access struct{ region, keyID, key, profile string }

// Arguments are the arguments of all states that say how AWS is reached.
type Arguments struct {
	Region  Region `sls:"region"`
	KeyID   string `sls:"keyid"`
	Key     string `sls:"key"`
	Profile any    `sls:"profile"`
}

// Region is the name of a region, or "" for the one that other settings name.
type Region string

// UnmarshalSLS implements module.Unmarshaler. An empty text is an error: it comes from a pillar that lacks the region,
// and the resources would be made in another region.
func (r *Region) UnmarshalSLS(v any) error {
	name := value.Str(v)
	switch v.(type) {
	case nil:
		name = ""
	case string:
		if strings.TrimSpace(name) == "" {
			return diag.Amazon.Hint(errors.New("it is empty"), "name a region such as eu-west-1, or leave it out")
		}
	default:
		return fmt.Errorf("it is a %s, and the name of a region was expected", value.TypeName(v))
	}
	*r = Region(name)
	return nil
}

// profileFields returns the fields of a profile.
func profileFields() Fields {
	return Fields{"region": Word, "keyid": Word, "key": Word}
}

// Account is one account in one region, reached with some credentials.
type Account struct {
	access
	Config  sdk.Config
	failure error // why the account cannot be reached, or nil

	owner    string  // the same for all credentials of an account
	regional *memory // of the region of the account
	global   *memory // of services without regions

	mu       sync.Mutex
	retryers map[string]sdk.Retryer // by service
}

// Account returns the account that the arguments of a state select. service is the prefix of settings such as
// sqs.region.
func (c *Cloud) Account(ctx context.Context, service string, a Arguments) (*Account, error) {
	to, err := c.access(service, a)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.accounts[to]; known != nil {
		return known, known.failure
	}
	cfg, err := c.configFor(ctx, to)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.accounts == nil {
		c.accounts = map[access]*Account{}
	}
	account := &Account{access: to, Config: cfg, failure: err, retryers: map[string]sdk.Retryer{}}
	c.join(ctx, account)
	c.accounts[to] = account
	return account, err
}

// Client returns the configuration of a client of a service. All clients of a service share one retryer: when AWS
// throttles one of them, all of them slow down. The account keeps retryers and connections but no clients. States refer
// to the account, and the linker would keep every request of a client that is reachable from it, which is tens of
// megabytes.
func (a *Account) Client(service string) sdk.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	retryer := a.retryers[service]
	if retryer == nil {
		retryer = a.Config.Retryer()
		a.retryers[service] = retryer
	}
	cfg := a.Config
	cfg.Retryer = func() sdk.Retryer { return retryer }
	return cfg
}

// access returns how an account is reached: arguments take precedence over the profile, and the profile over settings.
func (c *Cloud) access(service string, a Arguments) (access, error) {
	to := access{region: string(a.Region), keyID: a.KeyID, key: a.Key}
	profile := a.Profile
	if name, ok := profile.(string); ok {
		if profile = c.Option(name); profile == nil {
			to.profile = name
		}
	}
	switch p := profile.(type) {
	case nil:
	case *value.Map:
		if err := profileFields().Check("profile", p); err != nil {
			return to, err
		}
		to.fill(func(name string) any { return p.Value(name) })
	default:
		return to, fmt.Errorf("profile is a %s, and a name or a mapping was expected", value.TypeName(profile))
	}
	to.fill(func(name string) any { return c.Option(service + "." + name) })
	c.addSecret(to.key)
	if (to.key == "") != (to.keyID == "") {
		return to, diag.Credentials.Hint(errors.New("key or keyid is given without the other one"), "give both, or neither")
	}
	return to, nil
}

func (a *access) fill(of func(name string) any) {
	for name, field := range map[string]*string{"region": &a.region, "keyid": &a.keyID, "key": &a.key} {
		if v := of(name); *field == "" && v != nil {
			*field = value.Str(v)
		}
	}
}

// Option returns an option of the minion's configuration or of the pillar, or nil if there is none.
func (c *Cloud) Option(name string) any {
	if c.Setting == nil {
		return nil
	}
	return c.Setting(name)
}

func (c *Cloud) configFor(ctx context.Context, to access) (sdk.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(c.retryer),
		config.WithAPIOptions(append(slices.Clone(c.APIOptions), refuseUnknown, c.keepSecrets, noteSent)),
		config.WithDefaultRegion("us-east-1"), // the default of Salt
		config.WithLogger(logging.Nop{}),      // what fails is an error of the state
	}
	if to.region != "" {
		options = append(options, config.WithRegion(to.region))
	}
	if to.profile != "" {
		options = append(options, config.WithSharedConfigProfile(to.profile))
	}
	if to.keyID != "" {
		options = append(options,
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(to.keyID, to.key, "")))
	}
	if c.Endpoint != "" {
		options = append(options, config.WithBaseEndpoint(c.Endpoint))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, diag.Credentials.Hint(fmt.Errorf("reading how AWS is reached: %w", readable{err}),
			"name a profile of the pillar or of AWS's configuration, or give region, keyid and key")
	}
	cfg.Credentials = credentialsOf{cfg.Credentials}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if diag.HintOf(err) != "" {
			return cfg, fmt.Errorf("looking for credentials of AWS: %w", err)
		}
		return cfg, diag.Credentials.Hint(fmt.Errorf("looking for credentials of AWS: %w", readable{err}),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, sign in with AWS's tools, or name a profile")
	}
	cfg.HTTPClient = limited(cfg.HTTPClient)
	return cfg, nil
}
