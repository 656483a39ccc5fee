package delivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/turns"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// LockWait bounds how long an upload waits for another writer of the reports, since the run holds the host's lock
// meanwhile. It is shorter than the time limit of a store's request, after which the upload would be repeated.
const LockWait = 5 * time.Second

// ReportKey returns the key of the report of a run in a store. Hosts of all projects write there, so the project is
// part of it and access can be given by project.
func ReportKey(project, host, run string) string {
	return strings.Join([]string{"reports", project, host, run + ".json"}, "/")
}

// upload writes the report of the run and the host's record, which has the present state of the host, to the store. A
// run with nothing new to report writes nothing, except that it renews the record once per reports.heartbeat, and when
// what it signs counts again after a person has removed the key of another machine.
func (r *Run) upload(ctx context.Context, acted bool) error {
	url := r.StoreURL()
	if url == "" || r.Identity.Service == "" {
		return nil
	}
	out := r.outgoing()
	record, changed := outgoing.Record(out, r.Ledger.Hold != nil), outgoing.HasChanges(out, acted)
	record.Unseeing = turns.Unseeing(r.Ledger) != ""
	key, err := r.signingKey()
	if err != nil {
		return err
	}
	attempts := hostkey.ReadAttempts(r.Site.Layout.HostRegistered())
	defer func() { r.noteReplaced(attempts.First(key)) }() // after the registration of this run, if any
	w := hostrecord.Writer{URL: redact.URLs(url), Key: key, File: r.Site.Layout.HostRecord(), Now: r.Site.Time()}
	unwritable := r.Site.Unwritable()
	due := w.Due(r.Site.Config.Heartbeat) || attempts.Absent()
	current := unwritable == nil && !changed && !due && w.Has(record)
	if current && attempts.First(key) == "" {
		return nil
	}
	if w.Store, err = r.Open(url); err != nil {
		return err
	}
	r.register(ctx, w.Store, key, attempts)
	switch {
	case current && attempts.First(key) != "":
		return nil
	case !changed && w.Has(record):
		r.keepRecord(ctx, w, out, unwritable, func() error { return w.Beat(store.LockWait(ctx, LockWait), record) })
		return nil
	}
	err = r.uploadReport(ctx, w.Store, w.Key, out)
	w.Again = err != nil
	r.keepRecord(ctx, w, out, unwritable, func() error {
		return w.Write(store.LockWait(ctx, LockWait), record, r.detail(w, out, record))
	})
	return err
}

// keepRecord writes or renews the host's record with write, or writes the failure that unwritable is.
func (r *Run) keepRecord(ctx context.Context, w hostrecord.Writer, out *report.Report, unwritable error,
	write func() error) {
	err := unwritable
	if err == nil {
		err = write()
	}
	r.noteRecord(r.orFailure(ctx, w, out, err))
}

// detail returns the error of the run for the host's record, or that of an earlier run which still matters.
func (r *Run) detail(w hostrecord.Writer, out *report.Report, record hostrecord.Record) hostrecord.Detail {
	if out.Error != "" {
		return hostrecord.Detail{Error: out.Error, Hint: out.Hint}
	}
	detail := w.Kept(record)
	detail.Error = cmp.Or(detail.Error, quarantinedFor(out, record), turns.Unseeing(r.Ledger))
	return detail
}

// quarantinedFor returns the reason why a release that the host does not deploy is in quarantine; "" if none is. The
// record of the run in which it failed may be long gone, as after an abort.
func quarantinedFor(out *report.Report, record hostrecord.Record) string {
	for _, q := range out.Quarantined {
		if record.Quarantined && (record.Wanted.Is(q.Release.Digest) || record.WantedBase.Is(q.Release.Digest)) {
			return q.Reason
		}
	}
	return ""
}

// noteReplaced notes that what this host signs counts for nothing, if another key is registered first; "" is none.
func (r *Run) noteReplaced(first hostkey.Public) {
	if first != "" {
		r.Record.Note("this host signs with another key than the one that is registered first for its name (%s): its "+
			"reports and its results in rollouts count for nothing until `corpus host forget %s`", first, r.Report.Host)
	}
}

// noteRecord notes why the host's record could not be written.
func (r *Run) noteRecord(err error) {
	if err != nil {
		r.Record.Note("%s", strings.Join(append([]string{err.Error()}, diag.AllHints(err)...), "; "))
	}
}

func (r *Run) uploadReport(ctx context.Context, s store.Store, key hostkey.Key, out *report.Report) error {
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	place := ReportKey(r.Identity.Service, r.Report.Host, r.ID)
	if err := store.CheckKey(place); err != nil {
		return fmt.Errorf("naming it: %w", err)
	}
	if data, err = key.Seal(place, data); err != nil {
		return err
	}
	_, err = s.Put(store.LockWait(ctx, LockWait), place, bytes.NewReader(data), int64(len(data)), store.Condition{})
	return err
}

// signingKey returns the key of this host, which signs what it uploads. A damaged key is replaced, which is noted.
func (r *Run) signingKey() (hostkey.Key, error) {
	if known := r.Key(); known != nil {
		return *known, nil
	}
	return hostkey.OpenFor(r.Report.Host, r.Site.Layout.HostKey(), r.Record.Note)
}

// register writes the public key of this host to the store. A failure is noted: what the key signs is then treated as
// unsigned.
func (r *Run) register(ctx context.Context, s store.Store, key hostkey.Key, kept *hostkey.Attempts) {
	about := hostkey.Registration{Host: r.Report.Host, At: r.Site.Time(), Agent: r.Site.Version}
	if err := key.RegisterDaily(store.LockWait(ctx, LockWait), s, redact.URLs(r.StoreURL()), kept,
		about); err != nil {
		r.Record.Note("%v", err)
	}
}
