package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A hold is asked for by a file of its own, since a run that is under way has the ledger: whoever holds or
// releases the host writes the request, and whoever saves the ledger next carries it out and removes the
// request, under a lock that is held for no longer than that. Every reader of the ledger sees the request.

// holdRequest is the request's file.
type holdRequest struct {
	Hold *ledger.Hold `json:"hold"` // nil to release the host
}

// Hold keeps new releases away until Unhold; what is deployed goes on converging. While a run is under way
// it counts from then on: that run finishes a deploy whose links it has moved, and begins no other.
func (a *Agent) Hold(reason string) error {
	book, err := a.hostBook()
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if book.Good == nil {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("nothing is deployed that could be held"), "deploy first: corpus-agent deploy"))
	}
	hold := &ledger.Hold{Since: a.Time().UTC(), Reason: reason}
	if book.Hold != nil {
		hold.Since = book.Hold.Since
	}
	return a.requestHold("hold", holdRequest{hold})
}

// Unhold lets new releases in again. While a run is under way it counts from then on, as Hold does.
func (a *Agent) Unhold() error { return a.requestHold("unhold", holdRequest{}) }

// requestHold leaves a request, and carries it out unless a run does that.
func (a *Agent) requestHold(command string, h holdRequest) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(a.Layout.State(), 0o700); err != nil {
		return site.ExplainDisk(err)
	}
	err = a.exclusively(func() error { return durable.WriteFile(a.Layout.HoldRequest(), append(data, '\n'), 0o600) })
	if errors.Is(err, os.ErrPermission) {
		return diag.WithHint(err, "run as root, or give a directory of your own with --root")
	}
	if err != nil {
		return site.ExplainDisk(err)
	}
	host := *a
	host.Alone = ""
	err = host.edit(command, func(*ledger.Ledger) error { return nil })
	if held := new(lock.Held); errors.As(err, &held) {
		return nil // the run that is under way reads it, or the next one does
	}
	return err
}

// exclusively does something while nobody else leaves or carries out a request.
func (a *Agent) exclusively(do func() error) error {
	f, err := os.OpenFile(a.Layout.HoldLock(), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock.Wait(f); err != nil {
		return err
	}
	return do()
}

// requested carries out in memory what was asked for. Its error is a request that cannot be read.
func (a *Agent) requested(book *ledger.Ledger) error {
	if a.Alone != "" {
		return nil
	}
	data, err := walk.ReadFile(a.Layout.HoldRequest())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var h holdRequest
	if err == nil {
		h, err = parseHold(data)
	}
	if err != nil {
		return fmt.Errorf("reading the request to hold or to release this host: %w", err)
	}
	book.Hold = h.Hold
	return nil
}

// parseHold reads a request. Only one that says so releases the host: {} and null say nothing.
func parseHold(data []byte) (h holdRequest, err error) {
	var says map[string]json.RawMessage
	if err := json.Unmarshal(data, &says); err != nil {
		return h, err
	}
	if _, ok := says["hold"]; !ok {
		return h, errors.New("it has no content")
	}
	return h, json.Unmarshal(data, &h)
}

// carryOutRequests saves a ledger with what was asked for, and removes the request.
func (a *Agent) carryOutRequests(book *ledger.Ledger, save func() error) error {
	if a.Alone != "" {
		return save()
	}
	if asked, err := walk.Named(a.Layout.HoldRequest()); err != nil || !asked {
		return errors.Join(save(), err)
	}
	return a.exclusively(func() error {
		_ = a.requested(book) // a run that finds a damaged request sets it aside before
		if err := save(); err != nil {
			return err
		}
		return durable.Remove(a.Layout.HoldRequest())
	})
}

// heldMeanwhile reports whether the host was held since the run decided to deploy a pair.
func (r *run) heldMeanwhile(pair ledger.Pair) bool {
	if r.test || r.requested(r.ledger) != nil || r.ledger.Hold == nil || r.ledger.Runs() == nil || r.ledger.Running != nil || r.ledger.Runs().Same(pair) {
		return false
	}
	r.record.Note("this host was held since this run began; %s waits", pair)
	return r.withhold(pair)
}
