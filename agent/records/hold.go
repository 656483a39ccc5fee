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

// holdRequest is the content of the file of a request.
type holdRequest struct {
	Hold *ledger.Hold `json:"hold"` // nil to release the host
}

// Hold prevents the deploy of new releases until Unhold; the deployed pair continues converging. A run that is in
// progress sees the hold as well: it finishes a deploy whose links it has moved, and begins no other. A host that is
// held already keeps the reasons that it has, and gets this one in addition; one Unhold ends them all.
func (rs *Records) Hold(reason string) error {
	book, err := rs.ReadHostLedger()
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if book.Good == nil {
		return exit.WithCode(exit.Usage, diag.Undeployed.Hint(errors.New("nothing is deployed that could be held"),
			"deploy first: corpus-agent deploy"))
	}
	hold := &ledger.Hold{Since: rs.Time().UTC(), Reason: reason}
	if before := book.Hold; before != nil { // another person may have had that reason
		hold.Since, hold.Reason = before.Since, before.With(reason)
	}
	return rs.requestHold("hold", holdRequest{hold})
}

// Unhold ends a hold, and reports whether there was one. Like Hold, it has an effect on a run that is in progress.
func (rs *Records) Unhold() (held bool, err error) {
	book, err := rs.ReadHostLedger()
	held = err != nil || rs.Requested(book) != nil || book.Hold != nil // a request that cannot be read may be a hold
	return held, rs.requestHold("unhold", holdRequest{})
}

// requestHold writes a request, and carries it out unless a run is in progress, which does so.
func (rs *Records) requestHold(command string, h holdRequest) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := rs.CheckPlace(rs.Layout.State()); err != nil {
		return err
	}
	if err := durable.MkdirAll(rs.Layout.State(), 0o700); err != nil {
		return site.ExplainDisk(err)
	}
	err = rs.exclusively(func() error { return durable.WriteFile(rs.Layout.HoldRequest(), append(data, '\n'), 0o600) })
	if errors.Is(err, os.ErrPermission) {
		return diag.Rights.Hint(err, "run as root, or give a directory of your own with --root")
	}
	if err != nil {
		return site.ExplainDisk(err)
	}
	host := *rs
	host.Alone = ""
	err = host.Edit(command, func(*ledger.Ledger) error { return nil })
	if held := new(lock.Held); errors.As(err, &held) {
		return nil // the run that is in progress reads it, or the next one does
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
		_ = rs.Requested(book) // a run has set a damaged request aside before this
		if err := save(); err != nil {
			return err
		}
		return durable.Remove(rs.Layout.HoldRequest())
	})
}
