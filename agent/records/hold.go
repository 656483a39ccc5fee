package records

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

// holdRequest is the request's file.
type holdRequest struct {
	Hold *ledger.Hold `json:"hold"` // nil to release the host
}

// Hold keeps new releases away until Unhold; what is deployed continues converging. While a run is under way
// it counts from then on: that run finishes a deploy whose links it has moved, and begins no other.
func (rs *Records) Hold(reason string) error {
	book, err := rs.ReadHostLedger()
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if book.Good == nil {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("nothing is deployed that could be held"),
			"deploy first: corpus-agent deploy"))
	}
	hold := &ledger.Hold{Since: rs.Time().UTC(), Reason: reason}
	if book.Hold != nil {
		hold.Since = book.Hold.Since
	}
	return rs.requestHold("hold", holdRequest{hold})
}

// Unhold lets new releases in again, and reports whether a hold kept them away. While a run is under way it counts from
// then on, as Hold does.
func (rs *Records) Unhold() (held bool, err error) {
	book, err := rs.ReadHostLedger()
	held = err != nil || rs.Requested(book) != nil || book.Hold != nil // what cannot be read may have held it
	return held, rs.requestHold("unhold", holdRequest{})
}

// requestHold leaves a request, and carries it out unless a run does that.
func (rs *Records) requestHold(command string, h holdRequest) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(rs.Layout.State(), 0o700); err != nil {
		return site.ExplainDisk(err)
	}
	err = rs.exclusively(func() error { return durable.WriteFile(rs.Layout.HoldRequest(), append(data, '\n'), 0o600) })
	if errors.Is(err, os.ErrPermission) {
		return diag.WithHint(err, "run as root, or give a directory of your own with --root")
	}
	if err != nil {
		return site.ExplainDisk(err)
	}
	host := *rs
	host.Alone = ""
	err = host.Edit(command, func(*ledger.Ledger) error { return nil })
	if held := new(lock.Held); errors.As(err, &held) {
		return nil // the run that is under way reads it, or the next one does
	}
	return err
}

// exclusively calls do while no other process adds or carries out a request.
func (rs *Records) exclusively(do func() error) error {
	f, err := os.OpenFile(rs.Layout.HoldLock(), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock.Wait(f); err != nil {
		return err
	}
	return do()
}

// Requested applies the requests to the ledger in memory. It returns an error for a request that it cannot read.
func (rs *Records) Requested(book *ledger.Ledger) error {
	if rs.Alone != "" {
		return nil
	}
	data, err := walk.ReadFile(rs.Layout.HoldRequest())
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

// parseHold reads a request. Only an explicit request releases the host: {} and null do not.
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

// carryOutRequests saves a ledger to which the requests were applied, and removes them.
func (rs *Records) carryOutRequests(book *ledger.Ledger, save func() error) error {
	if rs.Alone != "" {
		return save()
	}
	if asked, err := walk.Named(rs.Layout.HoldRequest()); err != nil || !asked {
		return errors.Join(save(), err)
	}
	return rs.exclusively(func() error {
		_ = rs.Requested(book) // a run that finds a damaged request sets it aside before
		if err := save(); err != nil {
			return err
		}
		return durable.Remove(rs.Layout.HoldRequest())
	})
}
