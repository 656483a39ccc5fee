// Package site reads the agent's view of one host: its layout, configuration and identity, the recipes of its releases,
// and which of its files another user could have changed. It only reads; packages above it change the host.
package site

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// Site is one host, and what the agent was given to work on it.
type Site struct {
	Layout layout.Layout
	Chroot bool // the layout's root is a system tree to be entered
	Config config.Config

	// Remote opens what states take from the web and from buckets; nil for nothing.
	Remote session.Remote
	// Version is the program's own.
	Version string
	// Cloud knows what instance metadata says; nil where there is none to ask.
	Cloud grains.Cloud
	// OnCloud says that this host surely runs in that cloud.
	OnCloud bool
	// Hostname is the host's name; nil asks the kernel.
	Hostname func() (string, error)
	// Units is what runs the host's units; nil means the init system of the layout's root.
	Units service.System
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

	// Alone is the project that the agent works for, if that is not the host's service.
	Alone string
	// Lists are those of releases' files, as runs read them; nil before the first run.
	Lists *fetch.Lists
	// Failures is what programs printed that failed in this run; nil before one did.
	Failures *FailedOutput
	// OwnUnit is what states asked of the agent's unit during a run; nil outside of one.
	OwnUnit *host.OwnUnit
	// WithoutPillar leaves the pillar that this host alone has of a project out of what is converged.
	WithoutPillar bool
	// Unread is called with the error of each file of the agent's own that the unprivileged user of a call may not read,
	// which then counts as absent; nil for root and outside of a call, where such a file is an error.
	Unread func(error)
}

// Held are those that this host holds.
func (s *Site) Held() fetch.Held { return fetch.Held{Layout: s.Layout, Lists: s.Lists} }

// Skips reports whether an error is about a file that a call continues without.
func (s *Site) Skips(err error) bool {
	if s.Unread == nil || !errors.Is(err, os.ErrPermission) {
		return false
	}
	s.Unread(err)
	return true
}

// Secrets is the redactor that knows the secrets of the host.
func (s *Site) Secrets() *redact.Redactor {
	if s.Redactor == nil {
		s.Redactor = &redact.Redactor{}
	}
	return s.Redactor
}

// FailedOutput is what programs printed that failed in this run.
func (s *Site) FailedOutput() *FailedOutput {
	if s.Failures == nil {
		s.Failures = &FailedOutput{}
	}
	return s.Failures
}

// Time is what the clock of the host says.
func (s *Site) Time() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Site) hostname() (string, error) {
	if s.Hostname != nil {
		return s.Hostname()
	}
	return os.Hostname()
}

// LayoutOf is the layout of a project.
func (s *Site) LayoutOf(name string) layout.Project { return s.Layout.Project(name) }

// PairDirs are the directories of a pair's releases as the host calls them. "" is for a release that the pair has not.
func (s *Site) PairDirs(p ledger.Pair) (service, base string) {
	if !p.BaseAlone() {
		service = s.Layout.Inside(s.LayoutOf(p.Service.Project).Release(p.Service.Dir()))
	}
	if p.Base != nil {
		base = s.Layout.Inside(s.LayoutOf(p.Base.Project).Release(p.Base.Dir()))
	}
	return service, base
}

// Reports is where reports are kept.
func (s *Site) Reports() report.Archive { return report.Archive{Dir: s.Layout.Reports()} }

// ProjectsOf are the projects of a pair.
func ProjectsOf(pair ledger.Pair) (names []string) {
	for _, release := range pair.Releases() {
		names = append(names, release.Project)
	}
	return names
}

// Journal is the journal of what the ledger is about.
func (s *Site) Journal() journal.Journal {
	dir := s.Layout.Journal()
	if s.Alone != "" {
		dir = s.Layout.ProjectJournal(s.Alone)
	}
	return journal.Journal{Dir: dir, Limit: s.Config.UndoLimit, FileLimit: s.Config.UndoFileLimit}
}
