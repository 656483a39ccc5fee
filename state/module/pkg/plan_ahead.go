package pkg

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// planned records the packages that earlier states of a dry run would install.
type planned struct {
	mu sync.Mutex
	by map[string]string // package -> the state that would install it, as named by owner
}

// joint is a package manager that can simulate several transactions in one call.
type joint interface {
	PlanAhead(ctx context.Context, list []host.Transaction) error
}

// owner returns a name of the state that is unique in its run; "" outside of a dry run.
func (i *installed) owner() string {
	if chunk := i.chunk(); chunk != nil {
		return value.Str(chunk.Value("__id__")) + "\n" + i.Name
	}
	return ""
}

// chunk returns the chunk of the state in the program of the run, or nil.
func (i *installed) chunk() *value.Map {
	if i.Coming == nil || i.Coming.Len() == 0 {
		return nil
	}
	chunk, _ := i.Coming.Items[0].(*value.Map)
	return chunk
}

// removePlanned removes the packages that an earlier state of the dry run would install from the job, and returns
// their names.
func (i *installed) removePlanned(j *job) (names []string) {
	own := i.owner()
	if own == "" {
		return nil
	}
	i.planned.mu.Lock()
	defer i.planned.mu.Unlock()
	j.targets = structsort.Without(j.targets, func(w wanted) bool {
		by, ok := i.planned.by[w.name]
		if !ok || by == own || w.version != "" {
			return false
		}
		names = append(names, w.name)
		return true
	})
	return names
}

// note records the packages that this state would install according to a dry run.
func (i *installed) note(changes []host.PackageChange) {
	own := i.owner()
	if own == "" {
		return
	}
	i.planned.mu.Lock()
	defer i.planned.mu.Unlock()
	for _, c := range changes {
		if _, ok := i.planned.by[c.Name]; !ok && c.New != "" {
			i.planned.by[c.Name] = own
		}
	}
}

// planAhead makes the package manager simulate this state and the later ones of a dry run with the same options in one
// call, which saves time.
func (i *installed) planAhead(ctx context.Context, h *host.Host, own host.Transaction) error {
	manager, ok := h.Packages.(joint)
	if !ok || i.chunk() == nil || i.Coming.Len() < 2 || i.Files != nil || own.Reinstall {
		return nil
	}
	list := []host.Transaction{own}
	for _, item := range i.Coming.Items[1:] {
		if t, ok := i.later(ctx, h, item); ok && len(t.Packages) > 0 && alike(t, own) {
			list = append(list, t)
		}
	}
	return manager.PlanAhead(ctx, list)
}

// alike reports whether two transactions differ only in their packages.
func alike(a, b host.Transaction) bool {
	a.Packages, b.Packages = nil, nil
	return reflect.DeepEqual(a, b)
}

// later returns the transaction of a later state of the run if that is a pkg.installed state without sources.
func (i *installed) later(ctx context.Context, h *host.Host, item any) (t host.Transaction, ok bool) {
	chunk, ok := item.(*value.Map)
	if !ok || chunk.Value("fun") != "installed" {
		return t, false
	}
	other := &installed{install: newInstall(), planned: &planned{}}
	if _, problems := module.Decode(other, module.Call{Function: "pkg.installed", Arguments: chunk}); len(problems) > 0 {
		return t, false
	}
	return other.plain(ctx, h)
}

// plain returns the transaction of a state that installs packages of the repositories.
func (i *installed) plain(ctx context.Context, h *host.Host) (t host.Transaction, ok bool) {
	if i.Files != nil {
		return t, false
	}
	j, err := i.job(ctx, h)
	if err != nil || len(j.again) > 0 {
		return t, false
	}
	t, err = i.order(ctx, h, j)
	return t, err == nil
}

// fetcher is a package manager that can download packages for later transactions.
type fetcher interface {
	FetchAhead(ctx context.Context, own host.Transaction, later func() []host.Transaction) func(context.Context)
}

// fetchAhead makes the package manager download the packages of later states concurrently with the run. The download
// begins before the transaction own.
func fetchAhead(ctx context.Context, h *host.Host, own host.Transaction) {
	later := module.LaterOf(ctx)
	manager, ok := h.Packages.(fetcher)
	if later == nil || !ok || !usual(own) {
		return
	}
	fetch := manager.FetchAhead(ctx, own, func() (list []host.Transaction) {
		for _, r := range later.States() {
			if other, ok := r.(*installed); ok && other.onlyInstalls() {
				if t, ok := other.plain(ctx, h); ok && usual(t) && !within(t, own) {
					list = append(list, t)
				}
			}
		}
		return list
	})
	if fetch != nil {
		later.Beside(fetch)
	}
}

// within reports whether all packages of a transaction, or none, are those of another, as with states of one batch.
func within(t, own host.Transaction) bool {
	return !slices.ContainsFunc(t.Packages, func(w host.Wanted) bool { return !slices.Contains(own.Packages, w) })
}

// usual reports whether a transaction installs packages with no options that differ from the defaults.
func usual(t host.Transaction) bool { return alike(t, host.Transaction{}) }
