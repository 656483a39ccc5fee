package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// read decodes a file into v and returns its content; nil if there is no file. The error is a *Corrupt if the file is
// not a regular file, is not JSON, or has no version. what is the name of the file in other errors.
func read(path, what string, v versioned) (data []byte, err error) {
	data, err = walk.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, walk.ErrNoFile):
		return nil, &Corrupt{Path: path, Err: err}
	case err != nil:
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	if len(bytes.Trim(data, "\x00 \t\r\n")) == 0 {
		return nil, &Corrupt{Path: path, Err: errors.New("it is empty")}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, &Corrupt{Path: path, Err: err}
	}
	if !v.says() { // {} and null are JSON, but no agent writes them
		return nil, &Corrupt{Path: path, Err: errors.New("it has no content")}
	}
	return data, nil
}

// versioned is a document that contains the version of its form, as every agent writes it.
type versioned interface{ says() bool }

func (l *Ledger) says() bool  { return l.Version > 0 }
func (p *Project) says() bool { return p.APIVersion > 0 }

// write replaces a file atomically, and creates its directory if it is missing. Fields in before, the file as it was
// read, that only a newer agent knows are kept.
func write(path, what string, v any, before []byte, dirMode, mode fs.FileMode) error {
	data, err := encode(v, before)
	if err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	if err := durable.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	return nil
}

func encode(v any, before []byte) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil && before != nil {
		data, err = merge(reflect.TypeOf(v), before, data)
	}
	return append(data, '\n'), err
}
