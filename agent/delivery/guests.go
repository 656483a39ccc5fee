package delivery

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/guests"
	"github.com/corpus-agent/corpus-agent/agent/notify"
)

// announceGuests sends a notification of each guest of this node that is ready and was not named in one, and records
// its disk in the ledger afterwards: a run that is killed between the two lets the next one send it again. It waits for
// a guest that was made just now only if a receiver besides the journal is configured.
func (r *Run) announceGuests(ctx context.Context) {
	c := r.Site.Config.Notify
	if !notify.Wanted(c, notify.GuestReady) {
		return
	}
	node := guests.Node{Layout: r.Site.Layout, Name: r.Identity.Node, Now: r.Site.Time, Known: r.Ledger.ReadyGuests,
		Dial: r.Dial}
	ready, known, err := node.Ready(ctx, c.WebhookURL != "" || len(c.MailTo) > 0 || len(c.Command) > 0)
	if err != nil {
		r.Record.Note("no notification of guests was sent: %v", err)
		return
	}
	for _, g := range ready {
		to := c
		if g.Contact != "" && !slices.Contains(c.MailTo, g.Contact) {
			to.MailTo = append(slices.Clone(c.MailTo), g.Contact)
		}
		if r.notify(ctx, to, notify.NoticeOfGuest(r.Report, g)) {
			known = append(known, g.Disk)
		}
	}
	slices.Sort(known)
	if slices.Equal(known, r.Ledger.ReadyGuests) {
		return
	}
	r.Ledger.ReadyGuests = known
	if err := r.Save(); err != nil {
		r.Record.Note("the next run sends the notifications of guests again: %v", err)
	}
}
