// Package aws has the boto_* states: they make what hosts live in, such as security groups, load balancers and auto
// scaling groups. They take the arguments of Salt 3006's states of these names and use the SDK of AWS for Go.
//
// Every state reads the resource, notes each field that differs together with the request that corrects it (plan), and
// sends these requests only in a run. A dry run therefore shows what a run does. What one state makes and another
// refers to, such as the ID of a security group, is not known before; Cloud.coming notes what a run would make, so that
// a dry run plans what depends on it.
package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Cloud reaches AWS for all states of a run.
type Cloud struct {
	// Setting is an option of the minion's configuration, or of the pillar; nil for none. A profile is one.
	Setting func(name string) any
	// Endpoint is asked instead of AWS; "" for AWS.
	Endpoint string
	// Bootstrap is the user data with which a host deploys itself, of the settings of `corpus bootstrap`; nil for none.
	Bootstrap func(settings *value.Map) (string, error)
	// APIOptions change what each client does with a request; tests answer requests with it.
	APIOptions []func(*middleware.Stack) error

	mu       sync.Mutex
	accounts map[access]*account
	answered atomic.Bool // AWS, or the server that is asked instead, has answered a request
}

// access is how an account of AWS is reached.
type access struct{ region, keyID, key, profile string }

// Account are the arguments that all states have: how AWS is reached.
type Account struct {
	Region  string `sls:"region"`
	KeyID   string `sls:"keyid"`
	Key     string `sls:"key"`
	Profile any    `sls:"profile"`
}

// account is one account in one region.
type account struct {
	access
	config  sdk.Config
	failure error // why it cannot be reached

	mu       sync.Mutex
	kept     map[string]*kept
	coming   map[string]bool
	retryers map[string]sdk.Retryer // by service
}

// kept is an answer that several states ask for.
type kept struct {
	known chan struct{} // closed when value or err is there
	value any
	err   error
}

// account gives the account that a state's arguments mean. service has settings of its own, such as sqs.region.
func (c *Cloud) account(ctx context.Context, service string, a Account) (*account, error) {
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
		c.accounts = map[access]*account{}
	}
	c.accounts[to] = &account{access: to, config: cfg, failure: err, kept: map[string]*kept{}, coming: map[string]bool{},
		retryers: map[string]sdk.Retryer{}}
	return c.accounts[to], err
}

// client is the configuration of a client of a service. All clients of a service share one retryer: when AWS throttles
// one of them, all of them slow down. The account keeps retryers and connections, not clients: states refer to it, and
// the linker keeps every request of a client that a state refers to, which is tens of megabytes.
func (a *account) client(service string) sdk.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	retryer := a.retryers[service]
	if retryer == nil {
		retryer = a.config.Retryer()
		a.retryers[service] = retryer
	}
	cfg := a.config
	cfg.Retryer = func() sdk.Retryer { return retryer }
	return cfg
}

// connections are those of an account. A client that is given the SDK's own type makes connections of its own.
type connections struct{ sdk.HTTPClient }

// access works out how an account is reached: arguments count before the profile, and the profile before settings.
func (c *Cloud) access(service string, a Account) (access, error) {
	to := access{region: a.Region, keyID: a.KeyID, key: a.Key}
	profile := a.Profile
	if name, ok := profile.(string); ok {
		if profile = c.setting(name); profile == nil {
			to.profile = name
		}
	}
	switch p := profile.(type) {
	case nil:
	case *value.Map:
		to.fill(func(name string) any { return p.Value(name) })
	default:
		return to, fmt.Errorf("profile is a %s, and a name or a mapping was expected", value.TypeName(profile))
	}
	to.fill(func(name string) any { return c.setting(service + "." + name) })
	if (to.key == "") != (to.keyID == "") {
		return to, diag.WithHint(errors.New("of key and keyid one is missing"), "give both, or neither")
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

func (c *Cloud) setting(name string) any {
	if c.Setting == nil {
		return nil
	}
	return c.Setting(name)
}

func (c *Cloud) configFor(ctx context.Context, to access) (sdk.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(c.retryer),
		config.WithAPIOptions(append(slices.Clone(c.APIOptions), refuseUnknown)),
		config.WithDefaultRegion("us-east-1"), // Salt's
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
		return cfg, diag.WithHint(fmt.Errorf("reading how AWS is reached: %w", err),
			"name a profile of the pillar or of AWS's configuration, or give region, keyid and key")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, diag.WithHint(fmt.Errorf("looking for credentials of AWS: %w", err),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, sign in with AWS's tools, or name a profile")
	}
	if cfg.HTTPClient == nil { // it is there where the environment names certificates
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = connections{cfg.HTTPClient}
	return cfg, nil
}

// refuseUnknown ends a request that refers to a resource which the run was to make and did not, before it is sent.
func refuseUnknown(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refuse what is not known", func(ctx context.Context,
		in middleware.InitializeInput,
		next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		if text, err := json.Marshal(in.Parameters); err == nil && bytes.Contains(text, []byte(later)) {
			return out, m, diag.WithHint(errors.New("it refers to a resource that this run did not make"),
				"correct what failed before it, and run it again")
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// patient repeats requests that AWS throttles or that meet an outage. A server that cannot be reached before it has
// answered once is a wrong address, or no network, and is not waited for.
type patient struct {
	sdk.RetryerV2
	answered *atomic.Bool
}

// retryer sends a request at most 10 times. It leaves out the SDK's limit for the retries of all requests together:
// where AWS throttles a run of many resources, its requests come slower instead, and none fails for what the others
// needed.
func (c *Cloud) retryer() sdk.Retryer {
	adaptive := retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
		o.StandardOptions = append(o.StandardOptions, func(s *retry.StandardOptions) { s.RateLimiter = ratelimit.None })
	})
	return patient{retry.AddWithMaxAttempts(adaptive, 10).(sdk.RetryerV2), &c.answered}
}

// IsErrorRetryable implements aws.Retryer.
func (p patient) IsErrorRetryable(err error) bool {
	return p.RetryerV2.IsErrorRetryable(err) && (p.answered.Load() || !unreachable(err))
}

// GetAttemptToken implements aws.RetryerV2.
func (p patient) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	release, err := p.RetryerV2.GetAttemptToken(ctx)
	if err != nil {
		return release, err
	}
	return func(err error) error {
		if !unreachable(err) && ctx.Err() == nil {
			p.answered.Store(true)
		}
		return release(err)
	}, nil
}

// unreachable reports whether no connection was made.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// remember gives an answer that several states need, and asks for it only once until it is forgotten.
func remember[T any](a *account, key string, ask func() (T, error)) (T, error) {
	a.mu.Lock()
	k := a.kept[key]
	first := k == nil
	if first {
		k = &kept{known: make(chan struct{}), err: errors.New("the request did not end")} // so that a panic leaves no answer
		a.kept[key] = k
	}
	a.mu.Unlock()
	if first {
		func() {
			defer close(k.known)
			k.value, k.err = ask()
		}()
	}
	<-k.known
	if k.err != nil {
		a.forget(key)
		var none T
		return none, k.err
	}
	v, _ := k.value.(T)
	return v, nil
}

// forget drops the answers whose keys begin so.
func (a *account) forget(prefix string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.kept {
		if strings.HasPrefix(key, prefix) {
			delete(a.kept, key)
		}
	}
}

// expect notes that a run makes a resource.
func (a *account) expect(kind, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.coming[kind+" "+name] = true
}

// expects reports whether a run makes a resource that does not exist yet.
func (a *account) expects(kind, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.coming[kind+" "+name]
}

// later stands in a plan for what is known only when a resource has been made.
const later = "(known once it is made)"

// missing is the error of a resource that others refer to and that does not exist.
func missing(kind, name, state string) error {
	return diag.WithHint(fmt.Errorf("there is no %s %s", kind, name), "declare it before with %s, or correct the name",
		state)
}

// failed says what failed and for which resource; AWS's own error says why.
func failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s %s: %w", what, name, err)
	if unreachable(err) {
		return diag.WithHint(wrapped, "look at the network, the region and --endpoint, and run it again")
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return wrapped
	}
	switch code := api.ErrorCode(); {
	case strings.Contains(code, "AccessDenied") || strings.Contains(code, "Unauthorized"):
		return diag.WithHint(wrapped, "allow the account this action, or name another profile")
	case strings.Contains(code, "InvalidClientTokenId") || strings.Contains(code, "SignatureDoesNotMatch"),
		strings.Contains(code, "ExpiredToken"), strings.Contains(code, "AuthFailure"):
		return diag.WithHint(wrapped, "renew the credentials of the profile")
	}
	return wrapped
}

// code reports whether an error of AWS has one of these codes.
func code(err error, codes ...string) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, c := range codes {
		if api.ErrorCode() == c {
			return true
		}
	}
	return false
}

// pages gathers the items of all pages. ask is given where the next page begins, nil for the first. The paginators of
// the SDK take a client as an interface, for which the linker keeps every request of its service: tens of megabytes.
func pages[T any](ask func(next *string) (items []T, after *string, err error)) (all []T, err error) {
	for next, more := (*string)(nil), true; more; {
		items, after, err := ask(next)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		more = after != nil && *after != "" && (next == nil || *after != *next)
		next = after
	}
	return all, nil
}
