// Package python makes a virtualenv relocatable.
//
// A virtualenv records the directory in which it was made: in the first line of every script, in its activation scripts
// and in its configuration. pip also records the sources of installed packages. Relocate makes scripts find the
// interpreter beside them, and removes the rest, so that the same sources give the same bytes and the result runs below
// any directory.
package python

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Layout has the paths of a virtualenv: its present path, the path under which it was made, and the path under which it
// will be used.
type Layout struct {
	Dir    string
	Built  string
	Prefix string
}

// Relocate removes the path of the build from the virtualenv.
func (l Layout) Relocate() error {
	if err := l.clean(); err != nil {
		return err
	}
	changed, err := l.scripts()
	if err != nil {
		return fmt.Errorf("relocating scripts: %w", err)
	}
	if err := l.configuration(); err != nil {
		return fmt.Errorf("relocating pyvenv.cfg: %w", err)
	}
	return l.records(changed)
}

// clean removes files that a release does not need: activation scripts, byte code, and pip's records of sources.
func (l Layout) clean() error {
	return filepath.WalkDir(l.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && name == "__pycache__":
			if err := os.RemoveAll(file); err != nil {
				return err
			}
			return fs.SkipDir
		case filepath.Base(filepath.Dir(file)) == "bin" && isActivation(name):
			return os.Remove(file)
		case name == "direct_url.json" && strings.HasSuffix(filepath.Dir(file), ".dist-info"):
			return os.Remove(file)
		}
		return nil
	})
}

func isActivation(name string) bool {
	return strings.HasPrefix(name, "activate") || strings.HasPrefix(name, "Activate")
}

// start is the beginning of a script: shell commands that run the interpreter beside the script, in a form that
// Python reads as a string and ignores.
const start = "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/python3 \"$0\" \"$@\"\n' '''\n"

// scripts rewrites the first lines of the scripts in bin and returns the changed ones.
func (l Layout) scripts() (map[string][]byte, error) {
	bin := filepath.Join(l.Dir, "bin")
	entries, err := os.ReadDir(bin)
	if err != nil {
		return nil, err
	}
	changed := map[string][]byte{}
	for _, e := range entries {
		file := filepath.Join(bin, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		body, ok := l.afterShebang(data)
		if !ok {
			continue
		}
		data = append([]byte(start), body...)
		if err := os.WriteFile(file, data, 0o755); err != nil {
			return nil, err
		}
		changed[file] = data
	}
	return changed, nil
}

// afterShebang returns a script without its first lines, if they name this virtualenv's interpreter. pip writes one
// line, or three if the path is too long for one.
func (l Layout) afterShebang(data []byte) ([]byte, bool) {
	first, rest, found := bytes.Cut(data, []byte("\n"))
	if !found || !bytes.HasPrefix(first, []byte("#!")) {
		return nil, false
	}
	if bytes.Contains(first, []byte(l.Built+"/bin/python")) {
		return rest, true
	}
	second, after, _ := bytes.Cut(rest, []byte("\n"))
	if bytes.HasPrefix(second, []byte("'''exec'")) && bytes.Contains(second, []byte(l.Built)) {
		_, body, ok := bytes.Cut(after, []byte("\n"))
		return body, ok
	}
	return nil, false
}

// configuration removes the line with the command that made the virtualenv.
func (l Layout) configuration() error {
	file := filepath.Join(l.Dir, "pyvenv.cfg")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "command") {
			kept = append(kept, line)
		}
	}
	return os.WriteFile(file, []byte(strings.Join(kept, "")), 0o644)
}

// records updates pip's lists of installed files.
func (l Layout) records(changed map[string][]byte) error {
	lists, err := walk.Glob(filepath.Join(l.Dir, "lib/python*/site-packages/*.dist-info/RECORD"))
	if err != nil {
		return err
	}
	for _, list := range lists {
		if err := record(list, changed); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
	}
	return nil
}

func record(list string, changed map[string][]byte) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return err
	}
	site := filepath.Dir(filepath.Dir(list))
	var unread []error
	rows = slices.DeleteFunc(rows, func(row []string) bool {
		found, err := walk.Named(filepath.Join(site, row[0]))
		unread = append(unread, err)
		return !found
	})
	if err := errors.Join(unread...); err != nil {
		return err
	}
	for _, row := range rows {
		if now, ok := changed[filepath.Join(site, row[0])]; ok && len(row) == 3 {
			sum := sha256.Sum256(now)
			row[1], row[2] = "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]), strconv.Itoa(len(now))
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(list, out.Bytes(), 0o644)
}
