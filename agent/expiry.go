package agent

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func (r *run) expires() (all, soon []trust.Expiry) { return r.Expiries(r.identity.Service) }

// event is what the end of the run is for those who are notified. Signatures that expire soon make an event of a run that
// has nothing else to report, once for each signature: the next event follows when the next one comes to its last third.
func (r *run) event() notify.Event {
	event := notify.EventOf(r.report)
	if event == notify.NoChange && len(r.unannounced()) > 0 && notify.Wanted(r.Config.Notify, notify.Expiry) {
		return notify.Expiry
	}
	return event
}

// unannounced are the signatures that expire soon, and of which no notification was sent.
func (r *run) unannounced() []trust.Expiry {
	return structsort.Without(r.report.Expiring, func(e trust.Expiry) bool { return slices.Contains(r.ledger.Announced, e) })
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
