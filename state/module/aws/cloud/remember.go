package cloud

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// memory is what a run knows of an account in a region: the answers that are kept, and what it makes.
type memory struct {
	mu      sync.Mutex
	kept    map[string]*kept
	planned map[string]bool
	called  map[string]string // by kind and name of a state: a tag Name that differs from it
}

func newMemory() *memory {
	return &memory{kept: map[string]*kept{}, planned: map[string]bool{}, called: map[string]string{}}
}

// kept is an answer of AWS that several states use.
type kept struct {
	known chan struct{} // closed once value or err is set
	value any
	err   error
}

// place says which account and region a memory is about. The region of services without regions is "".
type place struct{ owner, region string }

// join gives an account the memory of its region, and that of services without regions. Credentials that belong to the
// same account share them: what a state makes with some credentials, others refer to with others.
func (c *Cloud) join(ctx context.Context, a *Account) {
	if c.memories == nil {
		c.memories = map[place]*memory{}
	}
	owner := c.owner(ctx, a)
	of := func(region string) *memory {
		at := place{owner, region}
		if c.memories[at] == nil {
			c.memories[at] = newMemory()
		}
		return c.memories[at]
	}
	a.regional, a.global, a.owner = of(cmp.Or(a.Config.Region, "-")), of(""), owner
}

// owner returns a text that is the same for all credentials of an account. AWS is asked for the numbers of the accounts
// only if a run uses several credentials. Credentials that do not show their number are an account of their own.
func (c *Cloud) owner(ctx context.Context, a *Account) string {
	own := strings.Join([]string{a.keyID, a.key, a.profile}, "\x00")
	others := map[string]*Account{}
	for _, other := range c.accounts {
		if other.keyID == a.keyID && other.key == a.key && other.profile == a.profile {
			return other.owner
		}
		if other.failure == nil {
			others[other.owner] = other
		}
	}
	if len(others) == 0 || a.failure != nil {
		return own
	}
	a.global = newMemory()
	number, err := AccountNumber(ctx, a)
	if err != nil {
		return own
	}
	for owner, other := range others {
		if same, err := AccountNumber(ctx, other); err == nil && same == number {
			return owner
		}
	}
	return own
}

// global are the keys and kinds of services that have no regions.
const global = " roles members zones account managed role user group zone "

// memory returns the memory that has a key, or resources of a kind.
func (a *Account) memory(key string) *memory {
	if word, _, _ := strings.Cut(key, " "); strings.Contains(global, " "+word+" ") {
		return a.global
	}
	return a.regional
}

// Remember returns the answer that is kept under a key. If there is none, it calls ask, and keeps the answer for other
// states until Forget drops it. Errors are not kept.
func Remember[T any](a *Account, key string, ask func() (T, error)) (T, error) {
	m := a.memory(key)
	m.mu.Lock()
	k := m.kept[key]
	first := k == nil
	if first {
		k = &kept{known: make(chan struct{}), err: errors.New("the request did not end")} // if ask panics
		m.kept[key] = k
	}
	m.mu.Unlock()
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
	for _, m := range []*memory{a.regional, a.global} {
		if m == nil {
			continue
		}
		m.mu.Lock()
		for key := range m.kept {
			if strings.HasPrefix(key, prefix) {
				delete(m.kept, key)
			}
		}
		m.mu.Unlock()
	}
}

// Expect notes that the run makes a resource.
func (a *Account) Expect(kind, name string) {
	m := a.memory(kind)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.planned[kind+" "+name] = true
}

// Expects reports whether the run makes a resource that did not exist when it was looked for.
func (a *Account) Expects(kind, name string) bool {
	m := a.memory(kind)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.planned[kind+" "+name]
}

// Call returns the name that a resource has at AWS: the tag Name if the state declares it, and else the name of the
// state. Salt sets that tag last and finds the resource by it. Other states that refer to the resource by the name of
// its state get the name at AWS from Called.
func (a *Account) Call(kind, name string, tags *value.Map) string {
	tag := Text(tags, "Name")
	if tag == "" || tag == name {
		return name
	}
	m := a.memory(kind)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.called[kind+" "+name] = tag
	return tag
}

// Called returns the name at AWS of a resource that another state names.
func (a *Account) Called(kind, name string) string {
	m := a.memory(kind)
	m.mu.Lock()
	defer m.mu.Unlock()
	if tag := m.called[kind+" "+name]; tag != "" {
		return tag
	}
	return name
}

// Later stands in a plan for a value that is known only once a resource has been made.
const Later = "(known once it is made)"

// Pages returns the items of all pages. It calls ask with the token of each page, nil for the first one. The paginators
// of the SDK take a client as an interface, for which the linker keeps every request of its service: tens of megabytes.
func Pages[T any](ask func(next *string) (items []T, after *string, err error)) (all []T, err error) {
	pages := 0
	for next, more := (*string)(nil), true; more; {
		if pages++; pages > mostPages {
			return nil, errPages
		}
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
