package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// forLook adds a hint to the error of a command that only reads: runs repair the agent's files.
func (h *Host) forLook(err error) error {
	err = walk.ExplainLoop(h.forRoot(err))
	if err == nil || diag.HintOf(err) != "" {
		return err
	}
	return diag.Records.Hint(err,
		"what this host keeps is damaged; the next run sets it aside or writes it again, or says what is to be done: "+
			"corpus-agent deploy")
}

// forRoot adds a hint to the error for files of the agent that the user of a command may not read.
func (h *Host) forRoot(err error) error {
	if !errors.Is(err, fs.ErrPermission) || diag.HintOf(err) != "" {
		return err
	}
	hint := "run it as root: sudo corpus-agent ..."
	if h.Layout.Relocated() {
		hint = "run it as the user that deployed below " + h.Layout.Root
	}
	return exit.WithCode(exit.Usage,
		diag.Rights.Hint(
			fmt.Errorf("only root may read reports and the ledger, since they hold output of programs: %w", err),
			"%s", hint))
}

// History returns the kept reports, newest first.
func (h *Host) History() ([]*report.Report, error) {
	reports, err := h.Reports().All()
	slices.Reverse(reports)
	if err == nil && len(reports) == 0 && h.Reports().Any() {
		err = errors.New("none of the reports of this host can be read")
	}
	return reports, h.forLook(err)
}

// Report returns the report of a run; "" means the last one.
func (h *Host) Report(id string) (*report.Report, error) {
	if id != "" {
		r, err := h.Reports().Load(id)
		return r, exit.WithCode(exit.Usage, h.forRoot(err))
	}
	r, err := h.Reports().Last()
	err = h.forRoot(err)
	if err == nil && r == nil && h.Reports().Any() {
		return nil, exit.WithCode(exit.Usage, h.forLook(errors.New("none of the reports of this host can be read")))
	}
	if err == nil && r == nil {
		err = exit.WithCode(exit.Usage, diag.Undeployed.Hint(errors.New("nothing ran on this host yet"),
			"deploy first: corpus-agent deploy"))
	}
	return r, h.forRoot(err)
}
