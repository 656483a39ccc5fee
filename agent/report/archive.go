package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Archive is the directory of a host's reports, one file per run. They are ordered by their sequence; those
// of an agent that did not count come before them, by name.
type Archive struct{ Dir string }

// NewID makes the ID of a run: its time, and enough more to tell two runs of one second apart.
func NewID(at time.Time) string {
	return at.UTC().Format("20060102T150405") + fmt.Sprintf(".%06d", at.Nanosecond()/1000)
}

const suffix = ".json"

// Save keeps a report and removes the oldest ones above keep. One that has no sequence becomes the newest.
func (a Archive) Save(r *Report, keep int) error {
	sequences, unlisted := a.sequences()
	if r.Sequence == 0 {
		for _, n := range sequences {
			r.Sequence = max(r.Sequence, n)
		}
		r.Sequence++
	}
	if err := durable.MkdirAll(a.Dir, 0o700); err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(a.Dir, r.ID+suffix), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("keeping the report: %w", err)
	}
	if unlisted != nil {
		return unlisted
	}
	sequences[r.ID] = r.Sequence
	ids := inOrder(sequences)
	var errs []error
	for _, id := range ids[:max(0, len(ids)-keep)] {
		if id != r.ID {
			errs = append(errs, os.Remove(filepath.Join(a.Dir, id+suffix)))
			delete(sequences, id)
		}
	}
	a.keepIndex(sequences)
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
func (a Archive) IsBeside() (bool, error) { return walk.Exists(filepath.Join(a.Dir, besideName)) }

// Last is the newest report that can be read, or nil.
func (a Archive) Last() (*Report, error) {
	ids, err := a.IDs()
	for _, id := range slices.Backward(ids) {
		r, unread := a.Load(id)
		if unread == nil {
			return r, nil
		}
		if errors.Is(unread, fs.ErrPermission) { // so may the older ones be
			return nil, unread
		}
	}
	return nil, err
}

// All are the reports that can be read, oldest first. One that cannot be read, such as one that a power
// cut left empty, does not hide the others.
func (a Archive) All() ([]*Report, error) {
	ids, err := a.IDs()
	all := []*Report{}
	for _, id := range ids {
		r, unread := a.Load(id)
		if errors.Is(unread, fs.ErrPermission) {
			return all, unread
		}
		if unread == nil {
			all = append(all, r)
		}
	}
	return all, err
}

// Any reports whether there is a report, even one that cannot be read.
func (a Archive) Any() bool {
	ids, err := a.unordered()
	return err != nil || len(ids) > 0
}

// IDs lists the runs that have a report, oldest first.
func (a Archive) IDs() ([]string, error) {
	sequences, err := a.sequences()
	if err != nil {
		return nil, err
	}
	return inOrder(sequences), nil
}

// sequences are those of all reports, by the IDs of their runs.
func (a Archive) sequences() (map[string]int64, error) {
	ids, err := a.unordered()
	if err != nil {
		return nil, err
	}
	known, err := a.index()
	if err != nil {
		return nil, fmt.Errorf("reading the index of the reports: %w", err)
	}
	sequences := make(map[string]int64, len(ids))
	for _, id := range ids {
		var ok bool
		if sequences[id], ok = known[id]; !ok {
			sequences[id] = a.sequence(id)
		}
	}
	return sequences, nil
}

// unordered lists the runs that have a report, without a look at the reports.
func (a Archive) unordered() (ids []string, err error) {
	entries, err := os.ReadDir(a.Dir)
	if found, err := walk.Found(err); err != nil {
		return nil, fmt.Errorf("listing the reports: %w", err)
	} else if !found {
		return nil, nil
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// inOrder lists IDs by their sequences, oldest first.
func inOrder(sequences map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(sequences), func(x, y string) int {
		return cmp.Or(cmp.Compare(sequences[x], sequences[y]), cmp.Compare(x, y))
	})
}

// headSize is enough of a report to find its sequence, which is written at its start.
const headSize = 256

// sequence reads the sequence of a report out of the start of its file; 0 where there is none.
func (a Archive) sequence(id string) int64 {
	f, err := walk.OpenFile(filepath.Join(a.Dir, id+suffix))
	if err != nil {
		return 0
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, _ := io.ReadFull(f, head) // a file that is shorter has its sequence all the same
	_, rest, ok := bytes.Cut(head[:n], []byte(`"sequence": `))
	if !ok {
		return 0
	}
	number, _, _ := bytes.Cut(rest, []byte(","))
	sequence, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return sequence
}

// Load reads the report of a run. Changes of states are plain JSON in what it returns.
func (a Archive) Load(id string) (*Report, error) {
	data, err := walk.ReadFile(filepath.Join(a.Dir, filepath.Base(id)+suffix))
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
	if r.ID == "" { // such as {}
		return nil, fmt.Errorf("reading the report of run %s: it has no content", id)
	}
	return &r, nil
}
