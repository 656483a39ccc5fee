package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// read fills v from a file and reports whether there is one. One that is not JSON is a *Corrupt; what
// names the file in other errors.
func read(path, what string, v any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the %s: %w", what, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, &Corrupt{Path: path, Err: err}
	}
	return true, nil
}

// write replaces a file as a whole, and makes its directory where it is missing.
func write(path, what string, v any, dirMode, mode fs.FileMode) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	if err := durable.WriteFile(path, append(data, '\n'), mode); err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	return nil
}
