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

// imitation answers requests in the process of the test, as AWS does. It keeps resources, answers with 2 items a page,
// refuses requests as AWS does when there are too many, and shows what was made or deleted only to later reads.
type imitation struct {
	mu       sync.Mutex
	services []service
	requests map[string]int         // by operation
	throttle map[string]int         // of an operation, how many of the next requests are refused
	refuse   map[string]string      // by operation: the error of all its requests
	latency  time.Duration          // of each request
	before   func(operation string) // each request is answered; nil for nothing
	now      int                    // requests that wait for their answers
	widest   int                    // the most that did at once
}

// service answers the requests of one service of AWS: nil for a request that it does not know.
type service interface {
	answer(in any) (out any, err error)
}

// lag is how many reads do not show what was just made, or still show what was just deleted.
type lag struct{ reads int }

// over reports whether the time is over, and counts a read.
func (l *lag) over() bool {
	if l.reads == 0 {
		return true
	}
	l.reads--
	return false
}

// newImitation imitates services, which a test changes below its lock.
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

// cloud reaches the imitation, as a new run does.
func (i *imitation) cloud() *aws.Cloud {
	return &aws.Cloud{APIOptions: []func(*middleware.Stack) error{i.install}}
}

type requestKey struct{}

// install answers the requests of a client. The request as the state gave it is kept before the SDK writes it, and the
// answer is given where the SDK would read one.
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
	i.now++
	i.widest = max(i.widest, i.now)
	i.mu.Unlock()
	time.Sleep(i.latency)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now--
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
			return out, err
		}
	}
	return nil, fault("NotImitated." + operation)
}

// fault is an error as AWS answers.
func fault(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "the imitation refuses"}
}

// pageItems is how many items a page has. Measurements set what AWS's pages have.
var pageItems = 2

// page is the items of all from where a page begins, and where the next one does; nil for none.
func page[T any](all []T, from *string) ([]T, *string) {
	begin, _ := strconv.Atoi(sdk.ToString(from))
	begin = min(begin, len(all))
	if len(all)-begin <= pageItems {
		return all[begin:], nil
	}
	return all[begin : begin+pageItems], sdk.String(strconv.Itoa(begin + pageItems))
}

// sortedBy are the values of a mapping in the order of their keys, so that pages are the same at each request.
func sortedBy[T any](m map[string]T) (all []T) {
	for _, key := range sortedKeys(m) {
		all = append(all, m[key])
	}
	return all
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
