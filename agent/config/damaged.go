package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// File is the configuration file from which settings were read.
type File struct {
	Path    string
	Content []byte   // the valid content; nil if there is no file, or it is damaged
	Damaged *Damaged // the file cannot be used, and the settings are those of its copy
	Denied  error    // why the user may not read the file, whose settings are therefore not in use; see Sources.Optional
}

// Damaged is the error of a configuration file that is not as a person wrote it: it is missing, unreadable, empty or
// truncated, or has no settings. A mistake in a setting is not damage.
type Damaged struct {
	Path string
	Copy string // copy of the last valid file; "" if there is none, so that defaults apply
	Err  error
}

func (d *Damaged) Error() string {
	if d.Copy == "" {
		return fmt.Sprintf(
			"the configuration %s is damaged (%v) and has no copy; the settings in use are the defaults, the environment's, "+
				"and what this host remembers", d.Path, d.Err)
	}
	return fmt.Sprintf("the configuration %s is damaged (%v); the settings in use are those that were valid last, of %s",
		d.Path, d.Err, d.Copy)
}
func (d *Damaged) Unwrap() error { return d.Err }

// Hint describes how to repair the file.
func (d *Damaged) Hint() string {
	if d.Copy == "" {
		return diag.ConfigLost.Coded(fmt.Sprintf(
			"write the settings of this host into %s again (move away what is in its place); a host that is to have "+
				"none needs no file; then: corpus-agent config check. Nothing new is deployed meanwhile", d.Path))
	}
	return diag.ConfigLost.Coded(fmt.Sprintf(
		"repair %s, or put the copy back: mkdir -p %s && cp -T --remove-destination %s %s (move away a directory in its "+
			"place); then: corpus-agent config check. Nothing new is deployed meanwhile. A host that is to have no settings "+
			"needs a file with a comment in it", d.Path, filepath.Dir(d.Path), d.Copy, d.Path))
}

// source reads the configuration file, or its copy if the file is damaged.
func source(s Sources) (f File, data []byte, problems diag.List) {
	f.Path = s.File
	data, err := readRegular(s.File)
	absent := errors.Is(err, fs.ErrNotExist)
	copied := s.copy()
	if damage := damageOf(data, err, copied); damage != nil && !s.Required {
		f.Damaged = &Damaged{Path: s.File, Err: damage}
		if copied != nil {
			f.Damaged.Copy = s.Copy
		}
		return f, copied, nil
	}
	switch {
	case absent && !s.Required:
		return f, nil, nil
	case errors.Is(err, fs.ErrPermission) && s.Optional && !s.Required:
		f.Denied = err
		return f, nil, nil
	case err != nil:
		problems.AddError(diag.Pos{File: s.File}, unread(err))
		return f, nil, problems
	}
	f.Content = data
	return f, data, verify(data, s.File)
}

// readRegular reads a regular file. It does not block on another kind of file, such as a pipe.
func readRegular(path string) ([]byte, error) {
	data, err := walk.ReadGiven(path)
	if errors.Is(err, walk.ErrNoFile) {
		return nil, errIrregular
	}
	return data, err
}

var errIrregular = errors.New("it is not a regular file")

// unread returns the error for a configuration that could not be read.
func unread(err error) error {
	wrapped := fmt.Errorf("reading the configuration: %w", err)
	if errors.Is(err, errIrregular) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP) {
		return diag.ConfigLost.Hint(wrapped,
			"move away what is in the place of the file; a host that needs no settings needs no file")
	}
	if errors.Is(err, fs.ErrPermission) {
		return diag.Rights.Hint(wrapped, "the settings may hold secrets, so root alone reads them: run it as root")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return diag.ConfigLost.Hint(wrapped, "correct --config or CORPUS_CONFIG, or leave it out: a host that needs no "+
			"settings needs no file")
	}
	return wrapped
}

// copy returns the content of the copy if it has settings and is valid; otherwise nil.
func (s Sources) copy() []byte {
	if s.Copy == "" || s.Required {
		return nil
	}
	data, err := readRegular(s.Copy)
	if err != nil || len(bytes.TrimSpace(data)) == 0 || len(verify(data, s.Copy)) > 0 {
		return nil
	}
	return data
}

// damageOf returns the damage of a file, or nil if a person may have written it. Without a copy to compare with, only a
// path that is not a readable file, such as a directory, is known to be damaged.
func damageOf(data []byte, err error, copied []byte) error {
	empty := len(bytes.Trim(data, "\x00 \t\r\n")) == 0
	switch {
	case copied == nil && err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		return err
	case copied == nil, !hasSettings(copied) && (errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0):
		return nil // nothing was lost
	case err != nil:
		return err
	case empty:
		return errors.New("it is empty")
	case hasSettings(copied) && len(data) < len(copied) && bytes.HasPrefix(copied, data) && data[len(data)-1] != '\n':
		return errors.New("it is cut off")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return err
	}
	if len(root.Content) > 0 && root.Content[0].Kind != yaml.MappingNode {
		return errors.New("it holds no settings")
	}
	return nil
}

// hasSettings reports whether a file has more in it than comments.
func hasSettings(data []byte) bool {
	var root yaml.Node
	return yaml.Unmarshal(data, &root) == nil && len(root.Content) > 0
}
