package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// indexName is a cache of the sequence numbers of all reports, which saves a run from opening each report. A report
// that is not in the index is opened. An index that is lost or damaged, for example by a power failure, counts as
// empty.
const indexName = ".sequences"

// index reads the index: sequence numbers by the IDs of runs.
func (a Archive) index() (map[string]int64, error) {
	data, found, err := walk.Read(filepath.Join(a.Dir, indexName))
	if errors.Is(err, walk.ErrNoFile) {
		return nil, nil // an index that is not a regular file counts as empty
	}
	if err != nil || !found {
		return nil, err
	}
	var known map[string]int64
	if json.Unmarshal(data, &known) != nil {
		return nil, nil //nolint:nilerr,nilnil // a damaged index counts as empty
	}
	return known, nil
}

// keepIndex replaces the index. It is not synced to disk and may fail, since the reports hold their sequence numbers
// too. The host's lock lets one process write at a time.
func (a Archive) keepIndex(sequences map[string]int64) {
	file := filepath.Join(a.Dir, indexName)
	data, err := json.Marshal(sequences)
	if err == nil {
		err = os.WriteFile(file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		_ = os.RemoveAll(file) // without an index, reports are opened, which only costs time
	}
}
