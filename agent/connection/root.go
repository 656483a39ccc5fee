package connection

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// firstRoot returns the first root of trust, or its digest as text, that this command gives or that an earlier one gave
// whose store did not verify. It returns nil if neither gave one.
func (r *Run) firstRoot(given Given) ([]byte, error) {
	if given.Root == nil {
		return trust.Given(r.Site.Layout.Trust())
	}
	return given.Root, nil
}

// pinDir returns the directory in which a first root is pinned once it has verified the store. A dry run on a host
// without a root pins it in a temporary directory: runs of the timer would find the root, and no store for it.
func (r *Run) pinDir(pinned bool) (string, error) {
	if !r.Test || pinned {
		return r.Site.Layout.Trust(), nil
	}
	if err := durable.MkdirAll(r.Site.Layout.State(), 0o700); err != nil {
		return "", err
	}
	dir, err := durable.TempDir(r.Site.Layout.State())
	r.rehearsed = dir
	return dir, err
}

// KeepGiven writes the store and the first root of trust of the command line to the disk, before the first request to
// the store. The timer, whose runs have no such arguments, then repeats a first deploy whose store does not answer,
// refuses the host, or has no release for it yet.
func (r *Run) KeepGiven(given Given) error {
	url := r.URL()
	if r.Test || r.Ledger.Good != nil && given.Root == nil {
		return nil
	}
	if url == "" {
		return nil // Open fails
	}
	if _, err := r.openStores(url); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := r.keepRoot(given); err != nil {
		return err
	}
	if r.Ledger.Good != nil {
		return nil // KeepStore replaces a store that worked, once the new one has worked
	}
	r.Ledger.Host.Store = url
	return r.Save()
}

// keepRoot writes the first root of the command line to the disk, unless one is pinned.
func (r *Run) keepRoot(given Given) error {
	pinned, err := trust.Pinned(r.Site.Layout.Trust())
	if pinned || err != nil || given.Root == nil {
		return err
	}
	first, err := r.firstRoot(given)
	if err != nil {
		return err
	}
	return trust.Give(r.Site.Layout.Trust(), first)
}

// RestoreRoot writes the root of trust back if it was removed during this run. result is the error of the run. If the
// root cannot be written, RestoreRoot returns an error for that, unless the run failed already.
func (r *Run) RestoreRoot(result error) error {
	if r.Client == nil || r.Test {
		return result
	}
	lost, failed := r.Client.PutBack()
	switch {
	case failed != nil && result == nil:
		return exit.WithCode(exit.Refused,
			fmt.Errorf("the root of trust was removed during this run, and could not be written back: %w", failed))
	case failed != nil:
		r.Record.Note("the root of trust was removed during this run, and could not be written back: %v", failed)
	case lost:
		r.Record.Note("%s was removed during this run, with the root of trust; it was written again",
			r.Site.Layout.Inside(r.Site.Layout.Trust()))
	}
	return result
}

// Close removes the temporary directory of a dry run.
func (r *Run) Close(ctx context.Context) error {
	if r.rehearsed == "" {
		return nil
	}
	return durable.RemoveTemp(ctx, r.rehearsed)
}

// Recall reads the root of trust and the metadata on the disk, if a root is pinned.
func (r *Run) Recall() error {
	pinned, err := trust.Pinned(r.Site.Layout.Trust())
	if err != nil || !pinned {
		return err
	}
	_, err = trust.Recall(r.Site.Layout.Trust())
	return err
}
