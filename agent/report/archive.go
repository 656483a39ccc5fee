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
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Archive is the directory of a host's reports, one file per run. Reports are ordered by their sequence numbers.
// Reports of agents that wrote no sequence number come first, ordered by name.
type Archive struct{ Dir string }

// NewID returns the ID of a run: its time, down to the microsecond, so that two runs in one second differ.
func NewID(at time.Time) string {
	return at.UTC().Format("20060102T150405") + fmt.Sprintf(".%06d", at.Nanosecond()/1000)
}

const suffix = ".json"

// Save writes a report and removes the oldest reports above keep. A report without a sequence number gets the next one.
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

// besideName is the name of a run's report in the directory of the tree that the run left behind.
const besideName = "report.json"

// Beside writes the report as report.json into the archive's directory, next to the tree that the run left there.
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

// IsBeside reports whether the archive's directory has a report.json.
func (a Archive) IsBeside() (bool, error) { return walk.Exists(filepath.Join(a.Dir, besideName)) }

// Last returns the newest report that can be read, or nil.
func (a Archive) Last() (*Report, error) {
	ids, err := a.IDs()
	for _, id := range slices.Backward(ids) {
		r, unread := a.Load(id)
		if unread == nil {
			return r, nil
		}
		if errors.Is(unread, fs.ErrPermission) { // older reports have the same permissions
			return nil, unread
		}
	}
	return nil, err
}

// All returns the reports that can be read, oldest first. It skips a report that cannot be read, such as one that a
// power failure left empty.
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

// Any reports whether the archive has a report, even one that cannot be read.
func (a Archive) Any() bool {
	ids, err := a.unordered()
	return err != nil || len(ids) > 0
}

// IDs returns the IDs of the runs that have a report, oldest first.
func (a Archive) IDs() ([]string, error) {
	sequences, err := a.sequences()
	if err != nil {
		return nil, err
	}
	return inOrder(sequences), nil
}

// sequences returns the sequence numbers of all reports, by the IDs of their runs.
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

// unordered lists the runs that have a report, without opening the reports.
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

// inOrder sorts IDs by their sequence numbers, oldest first.
func inOrder(sequences map[string]int64) []string {
	ids := slices.Collect(maps.Keys(sequences))
	structsort.Func(ids, func(x, y string) int {
		return cmp.Or(cmp.Compare(sequences[x], sequences[y]), cmp.Compare(x, y))
	})
	return ids
}

// headSize is how much of a report is read to find its sequence number, which is near its start.
const headSize = 256

// sequence reads a report's sequence number from the start of its file. It returns 0 if there is none.
func (a Archive) sequence(id string) int64 {
	f, err := walk.OpenFile(filepath.Join(a.Dir, id+suffix))
	if err != nil {
		return 0
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, _ := io.ReadFull(f, head) // a short file is not an error: it may still hold the sequence number
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

// Load reads the report of a run. The changes of its states are plain JSON values.
func (a Archive) Load(id string) (*Report, error) {
	data, err := walk.ReadFile(filepath.Join(a.Dir, filepath.Base(id)+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Usage.Hint(fmt.Errorf("there is no report of run %s", id), "`corpus-agent history` lists the runs")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading the report of run %s: %w", id, err)
	}
	if r.ID == "" { // the file holds {}, for example
		return nil, fmt.Errorf("reading the report of run %s: it has no content", id)
	}
	return &r, nil
}
