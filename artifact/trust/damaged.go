package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Damage describes a kept file with changed content.
type Damage struct {
	Path string
	Why  string // the damage and its consequence, to follow the path in a sentence
}

// CheckedRoot is a root of trust that Damaged has verified, so that OpenChecked need not verify its signatures again.
type CheckedRoot struct {
	data []byte
	set  *tuf.Set
}

// take returns the verified set of a root with this content. It does so only once, since a client changes its set;
// otherwise it returns nil.
func (c *CheckedRoot) take(root []byte) *tuf.Set {
	if c == nil || c.set == nil || !bytes.Equal(c.data, root) {
		return nil
	}
	set := c.set
	c.set = nil
	return set
}

// check is like isRoot, and keeps the verified root for OpenChecked.
func (c *CheckedRoot) check(data []byte) (err error) {
	c.data = data
	c.set, err = newSet(data)
	return err
}

// Damaged checks the metadata files that a host keeps. It checks their syntax and, of the root only, the signatures;
// other signatures are verified when a file is used. It returns an error if a file cannot be read.
func Damaged(dir string) ([]Damage, *CheckedRoot, error) {
	root := &CheckedRoot{}
	var found []Damage
	var errs []error
	look := func(name string, check func([]byte) error, means string) {
		path := filepath.Join(dir, name)
		data, err := walk.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		if err := check(data); err != nil {
			found = append(found, Damage{Path: path, Why: fmt.Sprintf("was damaged (%v)%s", err, means)})
		}
	}
	look(rootFile, root.check, ", so that this host trusts no store any more")
	look(pinFile, isPin, "")
	look(givenFile, isGiven, ", so that this host has no root of trust")
	look(versionsFile, isJSON, ", so that this host cannot detect that a version that it ran gets other bytes")
	look(timestampFile, isMetadata, ", so that this host cannot detect that the store is rolled back to before it")
	for _, name := range []string{snapshotFile, roleFile(targetsRole)} {
		look(name, isMetadata, "")
	}
	roles, err := walk.Glob(filepath.Join(dir, "projects", "*.json"))
	errs = append(errs, err)
	for _, path := range roles {
		look(filepath.Join("projects", filepath.Base(path)), isMetadata, "")
	}
	return found, root, errors.Join(errs...)
}

func isRoot(data []byte) error {
	if err := isJSON(data); err != nil {
		return err
	}
	_, err := newSet(data)
	return err
}

func isPin(data []byte) error {
	_, err := artifact.ParseDigest(string(data))
	return err
}

func isJSON(data []byte) error {
	var object map[string]json.RawMessage
	return json.Unmarshal(data, &object)
}

// isMetadata is like isJSON for a file that must have content: {} and null are errors.
func isMetadata(data []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	if err == nil && len(object) == 0 {
		err = errors.New("it has no content")
	}
	return err
}

// Bootstrapped reports whether a host that keeps its trust in dir has ever pinned a root, even if it has lost it since.
func Bootstrapped(dir string) (bool, error) {
	for _, name := range []string{rootFile, pinFile, timestampFile} {
		if found, err := walk.Named(filepath.Join(dir, name)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// Remembers reports whether a host that keeps its trust in dir has read a store, so that it would notice an older state
// of the store.
func Remembers(dir string) (bool, error) { return walk.Exists(filepath.Join(dir, timestampFile)) }

// CheckKept checks the directory of a publisher's copies of metadata: that directories and files have the right type,
// and that the root verifies. The error names the damaged path on this machine, says how to repair it, and that the
// store is not affected. Absent files are fine, and other damaged metadata is read from the store again.
func CheckKept(dir string) error {
	for _, name := range []string{".", "projects", "roots", "pages"} {
		if err := keptAs(filepath.Join(dir, name), "directory", os.FileMode.IsDir); err != nil {
			return err
		}
	}
	for _, name := range []string{rootFile, pinFile, givenFile, timestampFile, snapshotFile, versionsFile,
		roleFile(targetsRole), ".lock"} {
		if err := keptAs(filepath.Join(dir, name), "file", os.FileMode.IsRegular); err != nil {
			return err
		}
	}
	roles, err := walk.Glob(filepath.Join(dir, "projects", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range roles {
		if err := keptAs(file, "file", os.FileMode.IsRegular); err != nil {
			return err
		}
	}
	root := filepath.Join(dir, rootFile)
	data, found, err := walk.Read(root)
	if err != nil || !found {
		return err
	}
	if err := isRoot(data); err != nil {
		return moveAway(root, fmt.Errorf("%s, which this machine keeps, is damaged: %w", root, err))
	}
	return nil
}

// keptAs returns an error if a path exists and has another type.
func keptAs(path, kind string, is func(os.FileMode) bool) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && is(info.Mode()):
		return nil
	case err == nil:
		return moveAway(path, fmt.Errorf("%s, which this machine keeps, is no %s", path, kind))
	case !walk.Nowhere(err):
		return err
	}
	if named, err := walk.Named(path); err != nil || !named {
		if walk.Nowhere(err) {
			err = nil // its parent is not a directory
		}
		return err
	}
	return moveAway(path, fmt.Errorf("%s, which this machine keeps, is a link that leads nowhere", path))
}

func moveAway(path string, err error) error {
	return diag.Records.Hint(err, "it is a file of this machine, and not of the store; move it away: mv %s %s.damaged; "+
		"it is created again from the root.json beside the keys (or --trust-root) and from the store", path, path)
}

// unreadKept returns the error for a kept file that could not be read.
func unreadKept(path string, err error) error {
	err = fmt.Errorf("reading the kept metadata of the store: %w", err)
	if errors.Is(err, walk.ErrNoFile) || walk.Nowhere(err) {
		return moveAway(path, err)
	}
	return err
}
