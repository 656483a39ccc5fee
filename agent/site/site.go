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
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// Site is one host, with the settings of the agent that works on it.
type Site struct {
	Layout layout.Layout
	Chroot bool // the layout's root is a system tree to be entered
	Config config.Config

	// Remote opens the sources of states on the web and in buckets; nil if there are none.
	Remote session.Remote
	// Buckets reads buckets with pillar data; nil if there are none.
	Buckets external.Buckets
	// Version is the version of the program.
	Version string
	// Cloud reads the instance metadata; nil if there is none.
	Cloud grains.Cloud
	// OnCloud reports that this host certainly runs in that cloud.
	OnCloud bool
	// Hostname returns the host's name; if nil, the kernel is asked.
	Hostname func() (string, error)
	// Units is the service manager; if nil, the init system of the layout's root.
	Units service.System
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Stopping reports whether the host is shutting down; nil asks systemd.
	Stopping func(context.Context) bool
	// Redactor collects the secrets of the host, and removes them from everything that a run shows; if nil, the agent
	// creates one.
	Redactor *redact.Redactor
	// Within is the ID of the run whose hook or procedure calls this agent; "" if there is none. Such a program has
	// it in its environment as CORPUS_RUN.
	Within string

	// Alone is the project that the agent works for, if that is not the host's service.
	Alone string
	// Lists caches the file lists of releases as runs read them; nil before the first run.
	Lists *fetch.Lists
	// Failures has the output of programs that failed in this run; nil if none has.
	Failures *FailedOutput
	// Seen keeps the service manager for further calls of System; if nil, each call opens another.
	Seen *SeenUnits
	// OwnUnit records the actions on the agent's unit that states ask for during a run; nil outside of a run.
	OwnUnit *host.OwnUnit
	// ConfigRefused is the error of CheckConfiguration, for a command that only reads: its settings are the defaults.
	ConfigRefused error
	// WithoutPillar excludes the project's pillar on this host from what is converged.
	WithoutPillar bool
	// Unread is called with the error of each of the agent's own files that the unprivileged user of a call may not
	// read. Such a file then counts as absent. If Unread is nil, as for root and outside of a call, such a file is an
	// error.
	Unread func(error)
}

// Held returns the releases that this host holds.
func (s *Site) Held() fetch.Held { return fetch.Held{Layout: s.Layout, Lists: s.Lists} }

// Skips reports whether an error is about a file that a call continues without.
func (s *Site) Skips(err error) bool {
	if s.Unread == nil || !errors.Is(err, os.ErrPermission) {
		return false
	}
	s.Unread(err)
	return true
}

// Secrets returns the redactor that knows the secrets of the host.
func (s *Site) Secrets() *redact.Redactor {
	if s.Redactor == nil {
		s.Redactor = &redact.Redactor{}
	}
	return s.Redactor
}

// FailedOutput returns the output of programs that failed in this run.
func (s *Site) FailedOutput() *FailedOutput {
	if s.Failures == nil {
		s.Failures = &FailedOutput{}
	}
	return s.Failures
}

// Time returns the current time by the host's clock.
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

// LayoutOf returns the layout of a project.
func (s *Site) LayoutOf(name string) layout.Project { return s.Layout.Project(name) }

// PairDirs returns the directories of a pair's releases, as paths of the host. It returns "" for a release that the
// pair does not have.
func (s *Site) PairDirs(p ledger.Pair) (service, base string) {
	if !p.BaseAlone() {
		service = s.Layout.Inside(s.LayoutOf(p.Service.Project).Release(p.Service.Dir()))
	}
	if p.Base != nil {
		base = s.Layout.Inside(s.LayoutOf(p.Base.Project).Release(p.Base.Dir()))
	}
	return service, base
}

// Reports returns the archive of reports.
func (s *Site) Reports() report.Archive { return report.Archive{Dir: s.Layout.Reports()} }

// ProjectsOf returns the projects of a pair.
func ProjectsOf(pair ledger.Pair) (names []string) {
	for _, release := range pair.Releases() {
		names = append(names, release.Project)
	}
	return names
}

// Journal returns the journal of the host, or of the project that the agent works for alone.
func (s *Site) Journal() journal.Journal {
	dir := s.Layout.Journal()
	if s.Alone != "" {
		dir = s.Layout.ProjectJournal(s.Alone)
	}
	return journal.Journal{Dir: dir, Limit: s.Config.UndoLimit, FileLimit: s.Config.UndoFileLimit}
}
