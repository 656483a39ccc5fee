package inspect

import (
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/undo"
)

// RunSequence returns the sequence numbers of the runs that have reports, by ID.
func (h *Host) RunSequence() map[string]int64 {
	reports, err := h.Reports().All()
	if err != nil {
		return nil // callers then use the order of the journal
	}
	all := map[string]int64{}
	for _, rep := range reports {
		if rep.Sequence > 0 { // 0 in reports of older agents
			all[rep.ID] = rep.Sequence
		}
	}
	return all
}

// Changes returns what a run changed and what it undid, by the journal. "" means the last run that changed something,
// with all changes that were undone together with its own.
func (h *Host) Changes(id string) (run string, all []undo.Difference, err error) {
	chapters, readErr := h.Journal().Chapters()
	for _, c := range chapters {
		if n := len(c.Runs); n > 0 && id == "" {
			run = c.Runs[n-1]
		}
	}
	if id != "" {
		run = id
	}
	all = undo.Changes(chapters, run)
	if id == "" {
		all = undo.ChangesWithUndo(chapters, run)
	}
	if len(all) > 0 || id == "" && readErr == nil {
		return run, all, nil
	}
	if readErr != nil {
		return run, nil, exit.WithCode(exit.RollbackFailed, readErr)
	}
	if _, err := h.Reports().Load(id); err != nil {
		return run, nil, exit.WithCode(exit.Usage, err)
	}
	return run, nil, nil
}
