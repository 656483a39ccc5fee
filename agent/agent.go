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
	"io"
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
	// OpenBalancers opens the load balancers of this host's instance; nil where the run is not that of the running
	// system, as below a root.
	OpenBalancers func(context.Context) (*elb.Client, error)
	// Engine converges; nil means the one the configuration names.
	Engine state.Engine
	// ProbeAnyRoot runs health probes below a root as well, where they ask the running system; for callers that know
	// that the two belong together.
	ProbeAnyRoot bool
	// StateUnits is how states act on units; nil means as the host's init system does.
	StateUnits host.Units
	// Stderr is where an engine's own words go while it runs; nil for nowhere.
	Stderr io.Writer

	// Self is the agent as this host starts it next, which a run tries where it has changed it; nil where
	// the host that is converged does not start this agent, as below a root.
	Self *self.Self
	// LockDescriptor is the descriptor of the lock that the run which tries this program has lent to it; 0 for none.
	LockDescriptor int
}

// New is the agent of a host.
func New(s site.Site) *Agent { return &Agent{Host: inspect.Host{Records: records.Records{Site: s}}} }

// Given is what a person said about the host on the command line.
type Given struct {
	Identity  grains.Identity
	TrustRoot string // file of the first root, or sha256:HEX of it

	root []byte // what TrustRoot says, see readRoot

	Ahead bool // take what the channels name though a rollout lets this host wait

	Only     procedure.Only // steps to run; all of them by default
	Settings *value.Map     // of the project's configuration, for this run
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
