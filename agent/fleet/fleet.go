// Package fleet reads the reports and records of hosts from a store.
//
// Hosts with `reports.upload` write a report of each run with new results below reports/PROJECT/HOST/, signed with
// the key of the host (package hostkey), and renew their record while nothing changes (package hostrecord). If the
// store has the key of a host, only signed reports of the host count. Otherwise every report in the host's directory
// counts, and only the access rules of the store protect it: a reader such as `corpus attest` may require signed
// ones.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

const (
	prefix     = "reports/"
	maxReport  = 16 << 20 // bytes read of a report
	atOnce     = 16       // hosts whose reports are read at the same time
	mostTried  = 50       // reports of a host that are read to find one about the release
	runPattern = "20060102T150405"
)

// Prefix returns the key prefix of the reports of a project's hosts in a store. Reports of base are with the projects
// of the hosts.
func Prefix(project string) string {
	if project == artifact.Base {
		return prefix
	}
	return prefix + project + "/"
}

// QuarantinedRelease is a release that a host does not deploy, and why.
type QuarantinedRelease struct {
	Release artifact.Release `json:"release"`
	Reason  string           `json:"reason"`
	Run     string           `json:"run"` // the run that quarantined it
}

// Stage is a part of a run.
type Stage struct {
	Name string `json:"name"`
}

// Report has the fields of a host's report that are read.
type Report struct {
	ID       string         `json:"id"`
	Host     string         `json:"host"`
	Test     bool           `json:"test"`
	Ended    time.Time      `json:"ended"`
	Exit     int            `json:"exit_code"`
	Excused  bool           `json:"excused"` // the run failed only in states that may fail
	Outcome  string         `json:"outcome"`
	Channels []artifact.Ref `json:"channels"`
	Service  string         `json:"service"`
	Instance string         `json:"instance"`
	To       *ledger.Pair   `json:"to"`
	Left     *ledger.Pair   `json:"left"`
	Error    string         `json:"error"`

	Command     string               `json:"command"`
	From        *ledger.Pair         `json:"from"`
	Leaves      *ledger.Pair         `json:"leaves"`
	Proven      *ledger.Proven       `json:"proven"`
	Unserved    []string             `json:"unserved"`
	Quarantined []QuarantinedRelease `json:"quarantined"`
	// Proves is true if the agent sets Proven in every run that checked units and probes. In reports of older agents,
	// where it is missing, a run that made a release current has checked them.
	Proves bool `json:"proves"`
	// OtherRoot is true if the run worked below another root (--root), where units and probes are not checked.
	OtherRoot bool    `json:"other_root"`
	Stages    []Stage `json:"stages"`

	Agent string `json:"agent"`      // version of the program; reports of older agents do not have it
	Form  int    `json:"reads_form"` // newest form of projects' metadata that it reads; 0 for older agents

	signed bool      // with the key that the host registered
	sealed bool      // with a key of a host, registered or not
	seen   time.Time // when the store received it, by the store's clock
}

// RunResult is the result of a release on a host: the outcome of the newest run that concerns the release.
type RunResult struct {
	Host    string    `json:"host"`
	Run     string    `json:"run"`
	At      time.Time `json:"at"`
	Healthy bool      `json:"healthy"`
	Why     string    `json:"why,omitempty"` // why it is not healthy
	// Signed is true if the report is signed with the key that the host registered.
	Signed bool `json:"signed,omitempty"`
	// OtherRoot is true if only runs below another root concern the release. Healthy then only means that its states
	// converged in that directory.
	OtherRoot bool `json:"other_root,omitempty"`
}

// Question selects the results of a release.
type Question struct {
	Channel artifact.Ref // hosts that follow this channel
	Digest  artifact.Digest
	Since   time.Time // earlier reports are ignored
	Until   time.Time
}

// Ignored is a report that is ignored because its signature is not valid.
type Ignored struct {
	Host string `json:"host"`
	Run  string `json:"run"`
	Why  string `json:"why"`
}

// Answer has the results of a release on the hosts of a channel, by host.
type Answer struct {
	Results []RunResult
	Ignored []Ignored
}

// Keys reads the keys of hosts, such as hostkey.List.
type Keys func(context.Context, store.Store) (hostkey.Registry, error)

// Ask reads the results of a release on the hosts of a channel. Hosts without a result are omitted.
func Ask(ctx context.Context, s store.Store, keys Keys, q Question) (Answer, error) {
	runs, err := list(ctx, s, q)
	if err != nil {
		return Answer{}, err
	}
	known, err := keys(ctx, s)
	if err != nil {
		return Answer{}, err
	}
	readers := make([]reader, len(runs))
	words := make([]*RunResult, len(runs))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, host := range runs {
		readers[i] = reader{store: s, known: known}
		group.Go(func() (err error) { words[i], err = readers[i].ask(within, host, q); return err })
	}
	if err := group.Wait(); err != nil {
		return Answer{}, err
	}
	var answer Answer
	for i, w := range words {
		answer.Ignored = append(answer.Ignored, readers[i].ignored...)
		if w != nil {
			answer.Results = append(answer.Results, *w)
		}
	}
	return answer, nil
}

// hostRuns holds the reports of a host, newest first.
type hostRuns struct {
	of   string // PROJECT/HOST
	host string
	keys []string
	beat time.Time // when the store last received the host's record; zero if there is no valid one
}

// keepNewest sorts the reports and keeps those that are read at most.
func (h *hostRuns) keepNewest() {
	slices.SortFunc(h.keys, func(a, b string) int { return cmp.Compare(b, a) })
	h.keys = h.keys[:min(len(h.keys), mostTried)]
}

// later returns the later of the time of a report and that of the host's record, which repeats that nothing changed.
func (h hostRuns) later(at time.Time) time.Time {
	if h.beat.After(at) {
		return h.beat
	}
	return at
}

// hostRecords holds the valid records of hosts, by PROJECT/HOST. A host renews its record while nothing changes.
type hostRecords map[string]hostrecord.Listed

// at returns the time when the store last received the record of a host; zero if there is no valid one.
func (b hostRecords) at(of string) time.Time { return b[of].Seen }

// readBeats lists the records of a project's hosts, or of all hosts for "". Those that are not valid for the registered
// keys are omitted.
func readBeats(ctx context.Context, s store.Store, project string, known hostkey.Registry) (hostRecords, error) {
	records, err := hostrecord.List(ctx, s, project, known)
	if err != nil {
		return nil, err
	}
	found := hostRecords{}
	hosts, _ := records.Check(known)
	for _, r := range hosts {
		found[r.Project+"/"+r.Host] = r
	}
	return found, nil
}

// list returns the reports whose runs may have ended in time. The ID of a run is its start time; a run may take up to a
// day.
func list(ctx context.Context, s store.Store, q Question) ([]hostRuns, error) {
	return listBelow(ctx, s, Prefix(q.Channel.Project), q.Since, nil)
}

// listBelow returns the reports below a key prefix whose runs may have ended after since, and all reports of hosts that
// renewed their record since then.
func listBelow(ctx context.Context, s store.Store, prefix string, since time.Time,
	beats hostRecords) ([]hostRuns, error) {
	oldest := since.Add(-24 * time.Hour).UTC().Format(runPattern)
	byHost := map[string]*hostRuns{}
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("reading the reports of hosts: %w", err)
		}
		parts := strings.Split(info.Key, "/") // reports/PROJECT/HOST/RUN.json
		if len(parts) != 4 || !strings.HasSuffix(parts[3], ".json") || artifact.CheckHost(parts[2]) != nil {
			continue // not a name that a host writes: a user who may write there chose it
		}
		of := parts[1] + "/" + parts[2]
		if parts[3] < oldest && beats.at(of).Before(since) {
			continue
		}
		if byHost[of] == nil {
			byHost[of] = &hostRuns{of: of, host: parts[2], beat: beats.at(of)}
		}
		if byHost[of].keys = append(byHost[of].keys, info.Key); len(byHost[of].keys) > 2*mostTried {
			byHost[of].keepNewest()
		}
	}
	var all []hostRuns
	for _, h := range byHost {
		h.keepNewest()
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b hostRuns) int { return cmp.Compare(a.host, b.host) })
	return all, nil
}

// ask reads a host's reports until one has a result of the release. The result of a run below another root, good or
// bad, is used only if no run on the host itself has one; the newest such run is used.
func (d *reader) ask(ctx context.Context, h hostRuns, q Question) (*RunResult, error) {
	var elsewhere *RunResult
	for _, key := range h.keys[:min(len(h.keys), mostTried)] {
		r, err := d.read(ctx, h.host, key)
		if err != nil {
			return nil, err
		}
		// A report about another host than the one in whose directory it lies is ignored.
		if r == nil || r.Host != h.host || r.Ended.Before(q.Since) || r.Ended.After(q.Until) {
			continue
		}
		switch w := r.says(q); {
		case w == nil:
		case !w.OtherRoot:
			return w, nil
		case elsewhere == nil:
			elsewhere = w
		}
	}
	return elsewhere, nil
}

// reader reads the reports of a host.
type reader struct {
	store   store.Store
	known   hostkey.Registry
	ignored []Ignored
}

// read reads a report of a host; nil if it is not a report, or not valid.
func (d *reader) read(ctx context.Context, host, key string) (*Report, error) {
	data, info, err := store.ReadUpTo(ctx, d.store, key, maxReport)
	if err != nil {
		return nil, fmt.Errorf("reading the reports of hosts: %w", err)
	}
	var r Report
	if json.Unmarshal(data, &r) != nil {
		return nil, nil
	}
	r.seen = info.Modified.UTC()
	if r.signed, err = d.known.Check(host, key, data); err != nil {
		run := strings.TrimSuffix(path.Base(key), ".json")
		d.ignored = append(d.ignored, Ignored{Host: host, Run: run, Why: err.Error()})
		return nil, nil
	}
	_, err = hostkey.Unseal(key, data)
	r.sealed = err == nil
	return &r, nil
}

// forgotten reports whether a report is what is left of a host that a person removed (`corpus host forget`): its agent
// signs reports, and the store has neither a key nor a record of the host. Where no host at all has registered a key,
// hosts may not have the right to.
func (d *reader) forgotten(h hostRuns, r *Report) bool {
	return r.sealed && h.beat.IsZero() && len(d.known) > 0 && len(d.known[h.host]) == 0
}
