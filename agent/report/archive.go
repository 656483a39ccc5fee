package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Archive is the directory of a host's reports, one file per run, named so that they sort by time.
type Archive struct{ Dir string }

// NewID makes the ID of a run: its time, and enough more to tell two runs of one second apart.
func NewID(at time.Time) string {
	return at.UTC().Format("20060102T150405") + fmt.Sprintf(".%06d", at.Nanosecond()/1000)
}

const suffix = ".json"

// Save keeps a report and removes the oldest ones above keep.
func (a Archive) Save(r *Report, keep int) error {
	if err := durable.MkdirAll(a.Dir, 0o755); err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(a.Dir, r.ID+suffix), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	ids, err := a.IDs()
	if err != nil || len(ids) <= keep {
		return err
	}
	var errs []error
	for _, id := range ids[:len(ids)-keep] {
		errs = append(errs, os.Remove(filepath.Join(a.Dir, id+suffix)))
	}
	return errors.Join(errs...)
}

// besideName is the report of the run that left a tree, in the tree's directory.
const besideName = "report.json"

// Beside writes the report as report.json into the directory, for whoever finds what the run left
// there.
func (a Archive) Beside(r *Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = durable.WriteFile(filepath.Join(a.Dir, besideName), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping the report in %s: %w", a.Dir, err)
	}
	return nil
}

// IsBeside reports whether there is such a report.
func (a Archive) IsBeside() bool {
	_, err := os.Stat(filepath.Join(a.Dir, besideName))
	return err == nil
}

// Last is the newest report, or nil.
func (a Archive) Last() (*Report, error) {
	ids, err := a.IDs()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return a.Load(ids[len(ids)-1])
}

// IDs lists the runs that have a report, oldest first.
func (a Archive) IDs() ([]string, error) {
	entries, err := os.ReadDir(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the reports: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Load reads the report of a run. Changes of states are plain JSON in what it returns.
func (a Archive) Load(id string) (*Report, error) {
	data, err := os.ReadFile(filepath.Join(a.Dir, filepath.Base(id)+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.WithHint(fmt.Errorf("there is no report of run %s", id), "`corpus-agent history` lists the runs")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading the report of run %s: %w", id, err)
	}
	return &r, nil
}
