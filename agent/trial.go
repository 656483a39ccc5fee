package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
)

// trial performs the run of an agent that another run tries: a dry run of the deployed pair, or of the pair that the
// other run deploys, under the lock of the other run. It writes no file.
func (a *Agent) trial(ctx context.Context) (*report.Report, error) {
	lent, err := lock.Inherit(a.LockDescriptor, a.Layout.Lock())
	if err != nil {
		return nil, err
	}
	defer lent.Close()
	book, err := ledger.Load(a.LedgerPath())
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	r, err := a.begin("converge", true, book)
	if err != nil {
		return nil, err
	}
	err = r.rehearseNext(ctx)
	r.finish(ctx, err)
	return r.report, err
}

// rehearseNext reads the files of the host that a run needs, and converges the host in a dry run.
func (r *run) rehearseNext(ctx context.Context) error {
	if err := r.connection.Recall(); err != nil {
		return err
	}
	pair := r.ledger.Runs()
	if running := r.ledger.Running; running != nil && !running.Back {
		pair = &running.Pair
	}
	if pair == nil {
		return nil
	}
	if err := r.identify(ctx, grains.Identity{}); err != nil {
		return err
	}
	if !r.linking.Linked(*pair) {
		r.record.Note("the links do not lead to %s", pair)
	}
	return r.converge(ctx, *pair)
}
