// Package agent implements a run of the agent. It is the only package that defines the whole order of a deploy.
//
//	lock, identity -> resolve -> fetch, verify, unpack -> archive -> leave load balancers -> sync
//	  -> fixperms -> link next -> pre hooks -> converge -> install -> fixperms -> link current -> units -> post hooks
//	  -> self-test -> health -> ledger -> prune -> enter load balancers -> notify -> report
//
// Up to "sync" a run changes nothing on the host that other programs read. If a step from there to "health" fails, the
// run restores the links, converges the last good pair again, restarts its units and quarantines the new one. The run
// writes the ledger before it moves the first link and after it moves the last, so the next run finds a run that a
// power failure or a signal ended, and resumes it.
package agent

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Agent runs deploys on one host.
type Agent struct {
	inspect.Host
	Sinks []report.Sink

	// OpenStore opens the store of a URL.
	OpenStore func(url string) (store.Store, error)
	// OpenBalancers opens the load balancers of this host's instance. It is nil if the agent does not converge the
	// running system, such as below a root.
	OpenBalancers func(context.Context) (*elb.Client, error)
	// Engine is the engine that converges the host; if nil, the engine that the configuration names.
	Engine state.Engine
	// ProbeAnyRoot runs health probes below a root as well. The probes query the running system, so only a caller
	// that knows that the root belongs to that system sets it.
	ProbeAnyRoot bool
	// StateUnits is what states use to act on units; if nil, the init system of the host.
	StateUnits host.Units

	// Self is the agent that this host starts next. A run that has changed it tries it. Self is nil if the converged
	// host does not start this agent, such as below a root.
	Self *self.Self
	// LockDescriptor is the file descriptor of the lock that another run has lent to this process to try it; 0 if
	// there is none.
	LockDescriptor int
}

// New returns the agent of a host.
func New(s site.Site) *Agent {
	s.Seen = &site.SeenUnits{}
	return &Agent{Host: inspect.Host{Records: records.Records{Site: s}}}
}

// Given holds what the command line says about the host and the run.
type Given struct {
	Identity  grains.Identity
	TrustRoot string // file of the first root, or sha256:HEX of it

	root []byte // the root or its digest, set by readRoot

	Ahead bool // deploy what the channels name although this host waits for its turn in a rollout

	Only     procedure.Only // steps to run; all of them by default
	Settings *value.Map     // settings of the project's configuration that apply to this run
}

// readRoot reads the first root of trust that the command line gives as a file, or parses it as a digest. It is called
// before the run takes its lock, since reading a file that a user names may block.
func (g *Given) readRoot() (err error) {
	if g.TrustRoot == "" {
		return nil
	}
	if strings.HasPrefix(g.TrustRoot, "sha256:") {
		digest, err := artifact.ParseDigest(g.TrustRoot)
		g.root = []byte(digest)
		return err
	}
	g.root, err = trust.ReadRoot(g.TrustRoot)
	return err
}

// forStore returns what the command line says about the store.
func (g Given) forStore() connection.Given {
	return connection.Given{Identity: g.Identity, Root: g.root}
}

// stopped reports whether a signal ended the run.
func stopped(ctx context.Context) bool { return ctx.Err() != nil }
