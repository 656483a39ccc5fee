package cloud

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Remember returns the answer that is kept under a key. If there is none, it calls ask, and keeps the answer for other
// states until Forget drops it. Errors are not kept.
func Remember[T any](a *Account, key string, ask func() (T, error)) (T, error) {
	a.mu.Lock()
	k := a.kept[key]
	first := k == nil
	if first {
		k = &kept{known: make(chan struct{}), err: errors.New("the request did not end")} // if ask panics
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
		a.Forget(key)
		var none T
		return none, k.err
	}
	v, _ := k.value.(T)
	return v, nil
}

// Forget drops the kept answers whose keys begin with prefix.
func (a *Account) Forget(prefix string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.kept {
		if strings.HasPrefix(key, prefix) {
			delete(a.kept, key)
		}
	}
}

// Expect notes that the run makes a resource.
func (a *Account) Expect(kind, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.planned[kind+" "+name] = true
}

// Expects reports whether the run makes a resource that did not exist when it was looked for.
func (a *Account) Expects(kind, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.planned[kind+" "+name]
}

// Call returns the name that a resource has at AWS: the tag Name if the state declares it, and else the name of the
// state. Salt sets that tag last and finds the resource by it. Other states that refer to the resource by the name of
// its state get the name at AWS from Called.
func (a *Account) Call(kind, name string, tags *value.Map) string {
	tag := Text(tags, "Name")
	if tag == "" || tag == name {
		return name
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.called[kind+" "+name] = tag
	return tag
}

// Called returns the name at AWS of a resource that another state names.
func (a *Account) Called(kind, name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tag := a.called[kind+" "+name]; tag != "" {
		return tag
	}
	return name
}

// Later stands in a plan for a value that is known only once a resource has been made.
const Later = "(known once it is made)"

// Pages returns the items of all pages. It calls ask with the token of each page, nil for the first one. The paginators
// of the SDK take a client as an interface, for which the linker keeps every request of its service: tens of megabytes.
func Pages[T any](ask func(next *string) (items []T, after *string, err error)) (all []T, err error) {
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

// AccountNumber returns the number of an account, which is part of ARNs.
func AccountNumber(ctx context.Context, a *Account) (string, error) {
	return Remember(a, "account", func() (string, error) {
		out, err := sts.NewFromConfig(a.Client("sts")).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", Failed("reading the ID of", "the account", err)
		}
		return sdk.ToString(out.Account), nil
	})
}
