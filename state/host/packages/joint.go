package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// jointPlanner is a package manager that can simulate several installations at once.
type jointPlanner interface {
	// needs returns for each package of a plan the others that change because of it: those that it depends on, recommends
	// or conflicts with. size is the disk space of all in bytes, including their downloads.
	needs(ctx context.Context, t host.Transaction, changes []host.PackageChange) (names map[string][]string, size int64,
		err error)
}

// jointPlan has the changes that several successive transactions would make.
type jointPlan struct {
	all   map[host.Wanted]bool          // the packages of all transactions
	left  map[string]host.PackageChange // changes that no transaction has taken yet, by name
	needs map[string][]string
	size  int64 // disk space for all changes in bytes, including downloads
}

// PlanAhead simulates successive transactions in one call of the package manager, so that Plan needs no further call
// for each of them. It does nothing for package managers other than apt, and for transactions of different kinds. Plan
// then simulates each.
func (p *Packages) PlanAhead(ctx context.Context, list []host.Transaction) error {
	planner, ok := p.manager.(jointPlanner)
	if !ok || len(list) < 2 || p.Allowed(list[0].String()) != nil || p.foresaw(list[0]) {
		return nil
	}
	j := p.jointly(ctx, planner, list, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joint == nil {
		p.joint = map[string]*jointPlan{}
	}
	p.joint[kindOf(list[0])] = j
	if j == nil {
		return ctx.Err()
	}
	return nil
}

// kindOf returns a key for the options of a transaction.
func kindOf(t host.Transaction) string {
	t.Packages = nil
	return keyOf(t)
}

// jointly simulates transactions in one call; it returns nil if that is impossible. Plan then reports the errors of
// each. Where nothing but the named packages changes, it reads their sizes only if sized is set.
func (p *Packages) jointly(ctx context.Context, planner jointPlanner, list []host.Transaction, sized bool) *jointPlan {
	all, changes, ok := p.simulated(ctx, list)
	if !ok {
		return nil
	}
	j := &jointPlan{all: map[host.Wanted]bool{}, left: map[string]host.PackageChange{}}
	for _, c := range changes {
		j.left[c.Name] = c
	}
	for _, w := range all.Packages {
		j.all[w] = true
	}
	if sized || len(j.reached(all)) != len(changes) {
		var err error
		if j.needs, j.size, err = planner.needs(ctx, all, changes); err != nil {
			return nil
		}
	}
	if len(j.reached(all)) != len(changes) {
		return nil // a package changes that no transaction requires
	}
	return j
}

// simulated simulates transactions as one, without those whose packages the repositories lack.
func (p *Packages) simulated(ctx context.Context,
	list []host.Transaction) (all host.Transaction, changes []host.PackageChange, ok bool) {
	all, ok = joined(list)
	if !ok {
		return all, nil, false
	}
	changes, err := p.manager.plan(ctx, all)
	if err == nil {
		return all, changes, true
	}
	some, err := p.known(ctx, list)
	if err != nil || len(some) == len(list) {
		return all, nil, false
	}
	if all, ok = joined(some); !ok {
		return all, nil, false
	}
	changes, err = p.manager.plan(ctx, all)
	return all, changes, err == nil
}

// known returns the transactions whose packages the repositories have. Plan reports the errors of the others.
func (p *Packages) known(ctx context.Context, list []host.Transaction) ([]host.Transaction, error) {
	var names []string
	for _, t := range list {
		for _, w := range t.Packages {
			names = append(names, w.Name)
		}
	}
	offers, err := p.manager.offers(ctx, names, list[0].Release)
	return structsort.Without(list, func(t host.Transaction) bool {
		return slices.ContainsFunc(t.Packages, func(w host.Wanted) bool { _, ok := offers[w.Name]; return !ok })
	}), err
}

// foresaw reports whether a joint simulation of a transaction is unnecessary, since Plan has its changes already, or
// impossible.
func (p *Packages) foresaw(t host.Transaction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, planned := p.plans[keyOf(t)]
	j, tried := p.joint[kindOf(t)]
	return planned || tried && j == nil || j.covers(t)
}

// covers reports whether a transaction of the plan's kind is a part of the plan.
func (j *jointPlan) covers(t host.Transaction) bool {
	return j != nil && !slices.ContainsFunc(t.Packages, func(w host.Wanted) bool { return !j.all[w] })
}

// joined returns one transaction for several that differ only in their packages.
func joined(list []host.Transaction) (all host.Transaction, alike bool) {
	if len(list) < 2 {
		return all, false
	}
	all = list[0]
	all.Packages = nil
	kind, versions := kindOf(all), map[string]string{}
	for _, t := range list {
		if t.Action != host.InstallPackages || kindOf(t) != kind {
			return all, false
		}
		for _, w := range t.Packages {
			version, twice := versions[w.Name]
			if w.File != "" || twice && version != w.Version {
				return all, false
			}
			if versions[w.Name] = w.Version; !twice {
				all.Packages = append(all.Packages, w)
			}
		}
	}
	return all, true
}

// reached returns the changes to the packages of a transaction and to their dependencies.
func (j *jointPlan) reached(t host.Transaction) []host.PackageChange {
	var names []string
	for _, w := range t.Packages {
		names = append(names, w.Name)
		names = append(names, j.needs[virtual+w.Name]...)
	}
	seen := map[string]bool{}
	var changes []host.PackageChange
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		c, there := j.left[name]
		if seen[name] || !there {
			continue
		}
		seen[name] = true
		changes = append(changes, c)
		names = append(names, j.needs[name]...)
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// take removes the changes of a transaction from the plan and returns them.
func (j *jointPlan) take(t host.Transaction) []host.PackageChange {
	changes := j.reached(t)
	for _, c := range changes {
		delete(j.left, c.Name)
	}
	return changes
}

// virtual is the prefix of the keys of virtual packages, which other packages provide.
const virtual = "provided:"
