package aws_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// imitation imitates AWS in the process of the test. It keeps resources, answers with 2 items a page, throttles
// requests, and is eventually consistent: some reads after a change do not show it yet.
type imitation struct {
	mu          sync.Mutex
	services    []service
	requests    map[string]int         // by operation
	throttle    map[string]int         // by operation: how many of the next requests are throttled
	refuse      map[string]string      // by operation: the error of all its requests
	latency     time.Duration          // of each request
	before      func(operation string) // called before each answer; may be nil
	waiting     int                    // requests that wait for their answers
	mostWaiting int                    // the largest value of waiting
	born        int                    // how often resources that have no other IDs were replaced
}

// service answers the requests of one service of AWS. For a request of another service it returns nil.
type service interface {
	answer(in any) (out any, err error)
}

// lag is the number of reads that do not show a change yet.
type lag struct{ reads int }

// over reports whether a read shows the change. Otherwise it counts the read.
func (l *lag) over() bool {
	if l.reads == 0 {
		return true
	}
	l.reads--
	return false
}

// newImitation returns an imitation of services, and sets the environment so that the SDK does not use the machine's
// configuration.
func newImitation(t testing.TB, services ...service) *imitation {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "us-east-1")
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	return &imitation{services: services, requests: map[string]int{}, throttle: map[string]int{}}
}

// cloud returns the aws.Cloud of a new run, whose requests go to the imitation.
func (i *imitation) cloud() *aws.Cloud {
	return &aws.Cloud{APIOptions: []func(*middleware.Stack) error{i.install}}
}

type requestKey struct{}

// install adds the imitation to the middleware of a client. The first step keeps the request as the state passed it,
// and the last one returns the answer in the place where the SDK would decode a response.
func (i *imitation) install(stack *middleware.Stack) error {
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("keep the request", func(ctx context.Context,
		in middleware.InitializeInput,
		next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		return next.HandleInitialize(middleware.WithStackValue(ctx, requestKey{}, in.Parameters), in)
	}), middleware.Before)
	if err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("imitate AWS", func(ctx context.Context,
		_ middleware.DeserializeInput,
		_ middleware.DeserializeHandler) (out middleware.DeserializeOutput, m middleware.Metadata, err error) {
		out.Result, err = i.answer(middleware.GetOperationName(ctx), middleware.GetStackValue(ctx, requestKey{}))
		return out, m, err
	}), middleware.Before)
}

func (i *imitation) answer(operation string, in any) (any, error) {
	i.mu.Lock()
	i.waiting++
	i.mostWaiting = max(i.mostWaiting, i.waiting)
	i.mu.Unlock()
	time.Sleep(i.latency)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting--
	i.requests[operation]++
	if i.before != nil {
		i.before(operation)
	}
	if i.throttle[operation] > 0 {
		i.throttle[operation]--
		return nil, fault("Throttling")
	}
	if code := i.refuse[operation]; code != "" {
		return nil, fault(code)
	}
	for _, s := range i.services {
		if out, err := s.answer(in); out != nil || err != nil {
			i.stamp(out)
			return out, err
		}
	}
	return nil, fault("NotImitated." + operation)
}

// fault returns an error of AWS.
func fault(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "the imitation refuses"}
}

// pageItems is the number of items of a page. Measurements set that of AWS.
var pageItems = 2

// page returns the items of the page that begins at from, and the start of the next page or nil.
func page[T any](all []T, from *string) ([]T, *string) {
	begin, _ := strconv.Atoi(sdk.ToString(from))
	begin = min(begin, len(all))
	if len(all)-begin <= pageItems {
		return all[begin:], nil
	}
	return all[begin : begin+pageItems], sdk.String(strconv.Itoa(begin + pageItems))
}

// sortedBy returns the values of a mapping in the order of their keys, so that pages are the same for each request.
func sortedBy[T any](m map[string]T) (all []T) {
	for _, key := range sortedKeys(m) {
		all = append(all, m[key])
	}
	return all
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
