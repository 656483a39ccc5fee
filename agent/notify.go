package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// tellTime bounds how long a run that is over waits for those it tells.
const tellTime = 2 * time.Minute

// uploadLockWait bounds how long an upload waits for another writer of the reports, since the run holds the host's lock
// meanwhile. It is shorter than the time limit of a store's request, after which the upload would be repeated.
const uploadLockWait = 5 * time.Second

// tell gives the report that is complete, and kept, to all other receivers. What goes wrong is noted and changes
// nothing. A run that a signal ended still tells; its own context is over by then.
func (r *run) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	if r.acted {
		r.project.Notify(ctx, r.report.To)
	}
	if file := r.Config.Metrics; file != "" && r.Alone == "" {
		if err := (report.Metrics{File: r.Layout.Path(file)}).Write(r.report, r.ledger); err != nil {
			r.record.Note("%v", err)
		}
	}
	if event := r.event(); notify.Wanted(r.Config.Notify, event) {
		notice := notify.NoticeOf(r.outgoing())
		notice.Event = event
		r.announce(ctx, notice)
	}
	if r.Config.UploadReports {
		if err := r.upload(ctx); err != nil {
			r.record.Note("the report was not uploaded: %v", err)
		}
	}
}

func (r *run) notify(ctx context.Context, notice notify.Notice) {
	senders, skipped := notify.Senders(r.Config.Notify, r.Layout.Relocated())
	if len(skipped) > 0 {
		r.record.Note("%s: no notification was sent, since that is a program of the running system and not of %s",
			strings.Join(skipped, ", "), r.Layout.Root)
	}
	for _, s := range senders {
		if err := s.Send(ctx, notice); err != nil {
			r.record.Note("%v", err)
		}
	}
}

// ReportKey is where a store keeps the report of a run. Hosts of all projects write there, so the
// project is part of it and access can be given by project.
func ReportKey(project, host, run string) string {
	return strings.Join([]string{"reports", project, host, run + ".json"}, "/")
}

// upload puts the report of the run into the store, and the host's record, which says how the host now is. A run that
// has nothing new to report puts nothing there, but once per reports.heartbeat the record that is there already.
func (r *run) upload(ctx context.Context) error {
	url := r.storeURL()
	if url == "" || r.identity.Service == "" {
		return nil
	}
	out := r.outgoing()
	says, news := outgoing.Record(out, r.ledger.Hold != nil), outgoing.News(out, r.acted)
	key, err := r.signingKey()
	if err != nil {
		return err
	}
	if first := hostkey.Replaced(r.Layout.HostKey(), r.Layout.HostRegistered()); first != "" {
		r.record.Note("this host signs with another key than the one that it registered first (%s): its reports and its "+
			"results in rollouts count for nothing until `corpus host forget %s`", first, r.report.Host)
	}
	record := hostrecord.Writer{URL: redact.URLs(url), Key: key, File: r.Layout.HostRecord(), Now: r.Time()}
	if !news && !record.Due(r.Config.Heartbeat) && record.Has(says) {
		return nil
	}
	if record.Store, err = r.OpenStore(url); err != nil {
		return err
	}
	r.register(ctx, record.Store, key)
	if !news && record.Has(says) {
		r.noteRecord(record.Beat(store.LockWait(ctx, uploadLockWait), says))
		return nil
	}
	err = r.uploadReport(ctx, record.Store, record.Key, out)
	record.Again = err != nil
	detail := hostrecord.Detail{Error: out.Error, Hint: out.Hint}
	if out.Error == "" {
		detail = record.Kept(says)
	}
	r.noteRecord(record.Write(store.LockWait(ctx, uploadLockWait), says, detail))
	return err
}

// noteRecord notes why the host's record could not be written.
func (r *run) noteRecord(err error) {
	if err != nil {
		r.record.Note("%s", strings.Join(append([]string{err.Error()}, diag.AllHints(err)...), "; "))
	}
}

func (r *run) uploadReport(ctx context.Context, s store.Store, key hostkey.Key, out *report.Report) error {
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	place := ReportKey(r.identity.Service, r.report.Host, r.id)
	if err := store.CheckKey(place); err != nil {
		return fmt.Errorf("naming it: %w", err)
	}
	if data, err = key.Seal(place, data); err != nil {
		return err
	}
	_, err = s.Put(store.LockWait(ctx, uploadLockWait), place, bytes.NewReader(data), int64(len(data)), store.Condition{})
	return err
}

// signingKey is the key of this host, which signs what it uploads. One that is damaged is replaced, which is noted.
func (r *run) signingKey() (hostkey.Key, error) {
	key, damaged, err := hostkey.Open(r.Layout.HostKey())
	if err == nil && damaged != nil {
		r.record.Note("%v; with `corpus host forget %s` it counts in the store", damaged, r.report.Host)
	}
	return key, err
}

// register lets a store have the key of this host. A key that cannot be registered is noted: what it signs counts as
// what has no signature.
func (r *run) register(ctx context.Context, s store.Store, key hostkey.Key) {
	about := hostkey.Registration{Host: r.report.Host, At: r.Time(), Agent: r.Version}
	if err := key.RegisterDaily(store.LockWait(ctx, uploadLockWait), s, redact.URLs(r.storeURL()),
		r.Layout.HostRegistered(), about); err != nil {
		r.record.Note("%v", err)
	}
}

// outgoing is the report as it may leave the host.
func (r *run) outgoing() *report.Report {
	f := outgoing.Filter{Report: r.report, Ledger: r.ledger, Record: r.record, Printed: r.FailedOutput(),
		Readable: r.readable}
	return f.Copy()
}

func (r *run) expires() (all, soon []trust.Expiry) { return r.Expiries(r.identity.Service) }

// event is what the end of the run is for those who are notified. Signatures that expire soon make an event of a run
// that has nothing else to report, once for each signature: the next event follows when the next one comes to its last
// third.
func (r *run) event() notify.Event {
	event := notify.EventOf(r.report)
	if event == notify.NoChange && len(r.unannounced()) > 0 && notify.Wanted(r.Config.Notify, notify.Expiry) {
		return notify.Expiry
	}
	return event
}

// unannounced are the signatures that expire soon, and of which no notification was sent.
func (r *run) unannounced() []trust.Expiry {
	return structsort.Without(r.report.Expiring, func(e trust.Expiry) bool {
		return slices.Contains(r.ledger.Announced, e)
	})
}

// announce notes that notifications named what expires soon.
func (r *run) announce(ctx context.Context, notice notify.Notice) {
	news := len(r.unannounced()) > 0
	r.notify(ctx, notice)
	if !news || r.Alone != "" {
		return
	}
	r.ledger.Announced = r.report.Expiring
	if err := r.save(); err != nil {
		r.record.Note("the next run notifies of the same signatures that expire soon: %v", err)
	}
}
