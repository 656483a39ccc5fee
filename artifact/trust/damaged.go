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

// Damage is a file of what a host has seen that is not what was written there.
type Damage struct {
	Path string
	Why  string // what is wrong with it and what the loss means, as the rest of a sentence about it
}

// CheckedRoot is a root of trust that Damaged found sound, for OpenChecked: its signatures need not be verified twice.
type CheckedRoot struct {
	data []byte
	set  *tuf.Set
}

// take returns the set of a root with this content, once, since a client changes its set; nil for another root.
func (c *CheckedRoot) take(root []byte) *tuf.Set {
	if c == nil || c.set == nil || !bytes.Equal(c.data, root) {
		return nil
	}
	set := c.set
	c.set = nil
	return set
}

// check is isRoot for a root that is to be opened afterwards.
func (c *CheckedRoot) check(data []byte) (err error) {
	c.data = data
	c.set, err = newSet(data)
	return err
}

// Damaged looks through the directory in which a host keeps what it has seen. It judges the form of the
// files and, but for the root, no signatures: those are verified where a file is used. An error is one of reading.
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
	look(givenFile, isGiven, ", so that this host does not know whom to trust")
	look(versionsFile, isJSON, ", so that this host cannot tell whether a version that it ran gets other bytes")
	look(timestampFile, isMetadata, ", so that this host cannot tell whether the store goes back to before it")
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

// isMetadata is isJSON for a file that says something: {} and null do not.
func isMetadata(data []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	if err == nil && len(object) == 0 {
		err = errors.New("it has no content")
	}
	return err
}

// Bootstrapped reports whether a host that keeps its trust in dir has ever pinned a root, even if it has
// lost that root since then.
func Bootstrapped(dir string) (bool, error) {
	for _, name := range []string{rootFile, pinFile, timestampFile} {
		if found, err := walk.Named(filepath.Join(dir, name)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// Remembers reports whether a host that keeps its trust in dir has seen a store, so that it notices one
// that goes back in time.
func Remembers(dir string) (bool, error) { return walk.Exists(filepath.Join(dir, timestampFile)) }

// CheckKept looks whether the directory in which a publisher keeps what it has seen can be used: directories and files are
// what their names say, and the root is one. The error names the path on this machine that is damaged, and its cure: it says
// nothing about the store. A file that is not there is none, and other damaged metadata is read from the store again.
func CheckKept(dir string) error {
	for _, name := range []string{".", "projects", "roots", "pages"} {
		if err := keptAs(filepath.Join(dir, name), "directory", os.FileMode.IsDir); err != nil {
			return err
		}
	}
	for _, name := range []string{rootFile, pinFile, givenFile, timestampFile, snapshotFile, versionsFile, roleFile(targetsRole), ".lock"} {
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

// keptAs is the error of a path that is there and is something else.
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
			err = nil // a name below what is no directory
		}
		return err
	}
	return moveAway(path, fmt.Errorf("%s, which this machine keeps, is a link that leads nowhere", path))
}

func moveAway(path string, err error) error {
	return diag.WithHint(err, "it is of this machine, and says nothing about the store; move it away: mv %s %s.damaged; "+
		"it is made again from the root.json beside the keys (or --trust-root) and from the store", path, path)
}

// unreadKept is the error of reading what is kept.
func unreadKept(path string, err error) error {
	err = fmt.Errorf("reading what was seen of the store: %w", err)
	if errors.Is(err, walk.ErrNoFile) || walk.Nowhere(err) {
		return moveAway(path, err)
	}
	return err
}
