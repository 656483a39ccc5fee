package inspect

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Other is a project that is not the host's service.
type Other struct {
	Name        string            `json:"name"`
	Deployed    *artifact.Release `json:"deployed,omitempty"`
	Since       *time.Time        `json:"since,omitempty"`
	Quarantined []ledger.Bad      `json:"quarantined,omitempty"`
	Failing     *artifact.Release `json:"failing,omitempty"` // the failed release that a dev environment stays on
	// what failed first in the last run of the project; "" where that succeeded
	Failed   string `json:"failed,omitempty"`
	FailedIn string `json:"failed_in,omitempty"`
}

// others returns the projects with a ledger of their own, by name.
func (h *Host) others() ([]Other, error) {
	files, err := walk.Glob(h.Layout.ProjectLedger("*"))
	if err != nil {
		return nil, err
	}
	var list []Other
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Base(h.Layout.ProjectLedger("")))
		own := *h
		own.Alone = name
		book, err := own.ReadLedger()
		if err != nil {
			return list, err
		}
		o := Other{Name: name, Since: book.Since, Quarantined: book.Bad}
		if book.Good != nil {
			o.Deployed = &book.Good.Service
		}
		if book.Failing != nil {
			o.Failing = &book.Failing.Service
		}
		if err := own.lastFailure(&o); err != nil {
			return list, err
		}
		list = append(list, o)
	}
	return list, nil
}

// lastFailure sets the failure of the last run of a project. It does nothing for users who may not read reports.
func (h *Host) lastFailure(o *Other) error {
	ids, err := h.Reports().IDs()
	for i := len(ids) - 1; i >= 0 && err == nil; i-- {
		var r *report.Report
		if r, err = h.Reports().Load(ids[i]); err != nil || !h.Concerns(r) {
			continue
		}
		if r.Exit != exit.OK {
			o.Failed, o.FailedIn = firstFailure(r), r.ID
		}
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
