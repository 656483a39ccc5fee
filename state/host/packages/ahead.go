package packages

import (
	"context"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// downloader is a package manager that can download packages while it changes others.
type downloader interface {
	jointPlanner
	// spare returns the number of bytes that may still be written to the disk of the downloads.
	spare() (int64, error)
	// download fetches and verifies packages into directory n, without a lock.
	download(ctx context.Context, n int, changes []host.PackageChange) error
	// adopt moves downloaded packages of group n to the directory in which the package manager looks for them.
	adopt(ctx context.Context, n int, changes []host.PackageChange) error
	// discard deletes the directories of all groups.
	discard(ctx context.Context) error
}

// ahead holds the packages that are downloaded during a run for its later transactions, in groups.
type ahead struct {
	mu      sync.Mutex
	groups  []*group // in the order of the run; the index of a group names its directory
	stopped bool     // no further group is started
}

// group is a set of packages that one call downloads.
type group struct {
	changes []host.PackageChange
	ended   chan struct{} // nil before the start; closed at the end of the download
}

// FetchAhead returns a function that downloads the packages of later transactions during a run, or nil if there is
// nothing to download. It must be called before own, a transaction of the same run, is performed. The function keeps
// the packages for Do until its context is done; then it deletes those that no transaction used. After the first call,
// FetchAhead returns nil until the indexes are refreshed.
//
// Only apt supports this. The function downloads the packages that a simulation of all transactions together installs.
// FetchAhead returns nil if the disk does not have enough space for the downloads and the installed files. A
// transaction waits for those of its packages that are being downloaded, and fetches missing ones itself.
func (p *Packages) FetchAhead(ctx context.Context, own host.Transaction,
	later func() []host.Transaction) func(context.Context) {
	d, ok := p.manager.(downloader)
	if !ok || p.Allowed(own.String()) != nil || !p.newAhead() {
		return nil
	}
	list := slices.Insert(later(), 0, own)
	if len(list) < 2 {
		return nil
	}
	j := p.jointly(ctx, d, list, true)
	if j == nil {
		return nil
	}
	j.take(own)
	a := &ahead{groups: groupsOf(j, list[1:])}
	if free, err := d.spare(); err != nil || free < j.size || len(a.groups) == 0 {
		return nil
	}
	p.mu.Lock()
	p.ahead = a
	p.mu.Unlock()
	return func(ctx context.Context) { a.run(ctx, d) }
}

// newAhead reports whether this is the first call since the indexes were refreshed.
func (p *Packages) newAhead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ahead != nil {
		return false
	}
	p.ahead = &ahead{}
	return true
}

// groupsOf divides the changes of transactions into groups, each with twice as many transactions as the one before: the
// first ones arrive soon, and the rest take few calls of the package manager.
func groupsOf(j *jointPlan, list []host.Transaction) (groups []*group) {
	for size := 1; len(list) > 0; size *= 2 {
		n := min(size, len(list))
		var changes []host.PackageChange
		for _, t := range list[:n] {
			changes = append(changes, structsort.Without(j.take(t), func(c host.PackageChange) bool { return c.New == "" })...)
		}
		if list = list[n:]; len(changes) > 0 {
			groups = append(groups, &group{changes: changes})
		}
	}
	return groups
}

// run downloads one group after the other until one fails. At the end of ctx it deletes the packages that were not
// adopted.
func (a *ahead) run(ctx context.Context, d downloader) {
	for n := range a.groups {
		g := a.begin(n)
		if g == nil {
			continue
		}
		err := d.download(ctx, n, g.changes)
		close(g.ended)
		if err != nil { // each transaction reports the packages that it cannot fetch
			a.stop()
		}
	}
	<-ctx.Done()
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), queryLimit)
	defer end()
	_ = d.discard(ctx) // the next run does it again
}

// begin returns group n with the packages that no transaction has fetched itself; nil if there are none, or after stop.
func (a *ahead) begin(n int) *group {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.groups[n]
	if a.stopped || len(g.changes) == 0 {
		return nil
	}
	g.ended = make(chan struct{})
	return g
}

// stop prevents the start of further groups.
func (a *ahead) stop() {
	if a != nil {
		a.mu.Lock()
		a.stopped = true
		a.mu.Unlock()
	}
}

// adopt gives the package manager the downloaded packages of a transaction.
func (p *Packages) adopt(ctx context.Context, changes []host.PackageChange) {
	p.mu.Lock()
	a := p.ahead
	p.mu.Unlock()
	d, ok := p.manager.(downloader)
	if a == nil || !ok {
		return
	}
	for n := range a.groups {
		wanted, ended := a.parts(n, changes)
		if len(wanted) == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			_ = d.adopt(ctx, n, wanted) // the package manager fetches missing packages itself
		}
	}
}

// parts returns those of the changes that group n downloads, and the channel that is closed at the end of the download.
// If the download has not started, parts removes the changes from the group, and the transaction fetches them itself.
func (a *ahead) parts(n int, changes []host.PackageChange) (wanted []host.PackageChange, ended chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.groups[n]
	own := func(c host.PackageChange) bool {
		return slices.ContainsFunc(changes, func(o host.PackageChange) bool { return o.Name == c.Name && o.New == c.New })
	}
	if g.ended == nil {
		g.changes = slices.DeleteFunc(g.changes, own)
		return nil, nil
	}
	for _, c := range g.changes {
		if own(c) {
			wanted = append(wanted, c)
		}
	}
	return wanted, g.ended
}
