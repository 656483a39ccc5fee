// Package agent is the run: the only place that knows the whole order of a deploy.
//
//	lock, identity -> resolve -> fetch, verify, unpack -> archive -> sync -> fixperms -> link next
//	  -> pre hooks -> converge -> install -> fixperms -> link current -> units -> post hooks
//	  -> self-test -> health -> ledger -> prune -> notify -> report
//
// Up to "sync" nothing on the host has changed that anything reads. From there to "health" a
// failure puts the links back, converges the last good pair again, restarts its units and quarantines the
// new one. The
// ledger is written before the first link and after the last, so a run that power or a signal cut
// short is found by the next one, which takes it up again.
package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Agent runs deploys on one host.
type Agent struct {
	Layout layout.Layout
	Chroot bool // the layout's root is a system tree to be entered
	Config config.Config
	Sinks  []report.Sink

	// OpenStore opens the store of a URL.
	OpenStore func(url string) (store.Store, error)
	// Remote opens what states take from the web and from buckets; nil for nothing.
	Remote session.Remote
	// Version is the program's own.
	Version string
	// Cloud knows what instance metadata says; nil where there is none to ask.
	Cloud grains.Cloud
	// OnCloud says that this host surely runs in that cloud.
	OnCloud bool
	// Hostname is the host's name.
	Hostname func() (string, error)
	// Engine converges; nil means the one the configuration names.
	Engine state.Engine
	// ProbeAnyRoot runs health probes below a root as well, where they ask the running system; for
	// whoever knows that the two belong together.
	ProbeAnyRoot bool
	// Units is what runs the host's units; nil means the init system of the layout's root.
	Units service.System
	// StateUnits is how states act on units; nil means as the host's init system does.
	StateUnits host.Units
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Stopping reports whether the host is shutting down; nil asks systemd.
	Stopping func(context.Context) bool
	// Redactor gets the secrets of the host, and removes them from everything that a run shows; nil means one of
	// the agent's own.
	Redactor *redact.Redactor
	// Within is the run whose hook or procedure calls this agent; "" for none. It is in such a
	// program's environment as CORPUS_RUN.
	Within string
	// Stderr is where an engine's own words go while it runs; nil for nowhere.
	Stderr io.Writer

	// Self is the agent as this host starts it next, which a run tries where it has changed it; nil where
	// the host that is converged does not start this agent, as below a root.
	Self *self.Self
	// Lent is the descriptor of the lock that the run which tries this program has lent to it; 0 for none.
	Lent int

	said  *printed           // what programs printed that failed in this run
	own   *host.OwnUnit      // what states asked of the agent's unit during a run; nil outside of one
	root  *trust.CheckedRoot // that the repair of this run looked at; nil before one
	lists *fetch.Lists       // of releases' files, as runs read them; nil before the first run
	// pillarless leaves the pillar that this host alone has of a project out of what is converged.
	pillarless bool
	alone      string // the project that this agent is for, if it is not the host's service
	// unread hears of each file of the agent's own that the unprivileged user of a call may not read, which then counts
	// as absent; nil for root and outside of a call, where such a file is an error.
	unread func(error)
}

// skips reports whether an error is about a file that a call goes on without.
func (a *Agent) skips(err error) bool {
	if a.unread == nil || !errors.Is(err, os.ErrPermission) {
		return false
	}
	a.unread(err)
	return true
}

// ledgerPath is the file of what is deployed.
func (a *Agent) ledgerPath() string {
	if a.alone != "" {
		return a.Layout.ProjectLedger(a.alone)
	}
	return a.Layout.Ledger()
}

func (a *Agent) redactor() *redact.Redactor {
	if a.Redactor == nil {
		a.Redactor = &redact.Redactor{}
	}
	return a.Redactor
}

func (a *Agent) heard() *printed {
	if a.said == nil {
		a.said = &printed{}
	}
	return a.said
}

func (a *Agent) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

func (a *Agent) hostname() (string, error) {
	if a.Hostname != nil {
		return a.Hostname()
	}
	return os.Hostname()
}

// Given is what a person said about the host on the command line.
type Given struct {
	Identity  grains.Identity
	TrustRoot string // file of the first root, or sha256:HEX of it

	Only     procedure.Only // steps to run; all of them by default
	Settings *value.Map     // of the project's configuration, for this run
}

// Project is the layout of a project.
func (a *Agent) project(name string) layout.Project { return a.Layout.Project(name) }

// pairDirs are the directories of a pair's releases as the host calls them. "" is for a release that the pair has not.
func (a *Agent) pairDirs(p ledger.Pair) (service, base string) {
	if !p.BaseAlone() {
		service = a.Layout.Inside(a.project(p.Service.Project).Release(p.Service.Dir()))
	}
	if p.Base != nil {
		base = a.Layout.Inside(a.project(p.Base.Project).Release(p.Base.Dir()))
	}
	return service, base
}

// archive is where reports are kept.
func (a *Agent) archive() report.Archive { return report.Archive{Dir: a.Layout.Reports()} }

// stopped tells a run that a signal ended from one that failed.
func stopped(ctx context.Context) bool { return ctx.Err() != nil }
