package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// indexName is a cache of the sequences of all reports, so that a run does not open each of them for its own. A report that the
// index does not have is opened; an index that is lost or damaged, as by a power cut, has none.
const indexName = ".sequences"

// index is what the index says, by the IDs of runs.
func (a Archive) index() (map[string]int64, error) {
	data, found, err := walk.Read(filepath.Join(a.Dir, indexName))
	if errors.Is(err, walk.ErrNoFile) {
		return nil, nil // nor has what stands in its place
	}
	if err != nil || !found {
		return nil, err
	}
	var known map[string]int64
	if json.Unmarshal(data, &known) != nil {
		return nil, nil //nolint:nilerr,nilnil // a damaged index has none
	}
	return known, nil
}

// keepIndex replaces the index. It is not made durable, and may fail: reports have their sequences, too. Writers take turns, by
// the lock of the host.
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
		_ = os.RemoveAll(file) // one that is out of date only costs time
	}
}
