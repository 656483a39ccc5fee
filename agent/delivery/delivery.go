// Package delivery hands the report of a run that is over to the store, to metrics files and to notifications.
package delivery

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
)

// Run delivers the report of one run.
type Run struct {
	Site     *site.Site
	ID       string
	Ledger   *ledger.Ledger
	Record   *report.Builder
	Report   *report.Report
	Readable *outgoing.Readable // which files of the report every user may read
	Identity *grains.Identity

	StoreURL func() string                         // of the store; "" if the host has none
	Open     func(url string) (store.Store, error) // opens the store of a URL
	Save     func() error                          // writes the ledger
	Key      func() *hostkey.Key                   // the key of the host if the run has read it; nil if not

	// Dial connects to a guest of a node; nil for the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Send delivers a complete report that was saved. acted reports that the run changed, or tried to change, what is
// deployed. Failures are noted in the report and have no other effect.
func (r *Run) Send(ctx context.Context, acted bool) {
	if file := r.Site.Config.Metrics; file != "" && r.Site.Alone == "" {
		if err := (report.Metrics{File: r.Site.Layout.Path(file)}).Write(r.Report, r.Ledger); err != nil {
			r.Record.Note("%v", err)
		}
	}
	if event := r.event(); notify.Wanted(r.Site.Config.Notify, event) {
		notice := notify.NoticeOf(r.outgoing())
		notice.Event = event
		r.announce(ctx, notice)
	}
	if r.Identity.Service == cloud.Project && r.Site.Alone == "" {
		r.announceGuests(ctx)
	}
	if r.Site.Config.UploadReports {
		if err := r.upload(ctx, acted); err != nil {
			r.Record.Note("the report was not uploaded: %v", err)
		}
	}
}

// notify sends a notice to the receivers of a configuration. sent reports whether a receiver besides the journal has
// got it, or there is no other receiver.
func (r *Run) notify(ctx context.Context, c config.Notify, notice notify.Notice) (sent bool) {
	senders, skipped := notify.Senders(c, r.Site.Layout.Relocated())
	if len(skipped) > 0 {
		r.Record.Note("%s: no notification was sent, since that is a program of the running system and not of %s",
			strings.Join(skipped, ", "), r.Site.Layout.Root)
	}
	others := 0
	for _, s := range senders {
		_, journal := s.(notify.Journal)
		if !journal {
			others++
		}
		if err := s.Send(ctx, notice); err != nil {
			r.Record.Note("%v", err)
		} else if !journal {
			sent = true
		}
	}
	return sent || others == 0
}

// outgoing returns the report as it may leave the host.
func (r *Run) outgoing() *report.Report {
	f := outgoing.Filter{Report: r.Report, Ledger: r.Ledger, Record: r.Record, Printed: r.Site.FailedOutput(),
		Readable: r.Readable}
	return f.Copy()
}

// event returns the event of which notifications of the run are sent. Signatures that expire soon make an event of a
// run that has nothing else to report, once for each signature: the next event follows when the next one comes to its
// last third.
func (r *Run) event() notify.Event {
	event := notify.EventOf(r.Report)
	if event == notify.NoChange && len(r.unannounced()) > 0 && notify.Wanted(r.Site.Config.Notify, notify.Expiry) {
		return notify.Expiry
	}
	return event
}

// unannounced returns the signatures that expire soon and of which no notification was sent.
func (r *Run) unannounced() []trust.Expiry {
	return structsort.Without(r.Report.Expiring, func(e trust.Expiry) bool {
		return slices.Contains(r.Ledger.Announced, e)
	})
}

// announce sends a notification, and records in the ledger which expiring signatures it named.
func (r *Run) announce(ctx context.Context, notice notify.Notice) {
	news := len(r.unannounced()) > 0
	r.notify(ctx, r.Site.Config.Notify, notice)
	if !news || r.Site.Alone != "" {
		return
	}
	r.Ledger.Announced = r.Report.Expiring
	if err := r.Save(); err != nil {
		r.Record.Note("the next run notifies of the same signatures that expire soon: %v", err)
	}
}
