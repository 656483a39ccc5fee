// Package guest implements guest.present, guest.only, guest.archived and guest.checked, with which a node makes, moves
// and removes its guests: hosts that run on it, each with a root file system of its own.
//
// A guest is made from an image, a tar archive of a root file system, by a driver (nspawn or lxc). The record of a
// guest, a file below Records, maps its name to its ID and the ID of its disk in the cloud, and holds the operation
// that a run was about to perform. It is written before anything else, so a run after a power failure finishes or
// removes a guest that the last run began. A root file system gets its name only when it is complete and on the disk.
//
// A guest that moves to another node gets a disk with another ID there. The node before keeps its disk until that ID is
// among the deleted ones.
//
// Once a guest has run, its root can put links anywhere in its file system. Therefore a node writes into it only before
// it has run for the first time, and follows no link there.
package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Records is the directory with a file for each guest of a node.
const Records = cloud.Records

// Functions returns the functions of guest.
func Functions() module.Table {
	return module.Table{
		"present":  func() module.Resource { return &present{Driver: cloud.DefaultDriver} },
		"only":     func() module.Resource { return &only{} },
		"checked":  func() module.Resource { return &checked{} },
		"archived": func() module.Resource { return &archived{} },
	}
}

// The steps at which a record can be found.
const (
	creating = "creating" // the root file system may be incomplete
	ready    = "ready"
	deleting = "deleting" // its removal has begun
)

// record is the record of a guest on a node.
type record struct {
	Name   string `json:"-"`
	ID     string `json:"id"`
	Disk   string `json:"disk,omitempty"` // ID of the disk; empty for the first one, which has the guest's ID
	Driver string `json:"driver"`
	Group  string `json:"group,omitempty"` // volume group of LVM that has the disk; empty for a directory
	Quota  string `json:"quota,omitempty"` // kind of the quota that limits the disk; empty for none
	Size   int64  `json:"size,omitempty"`  // limit of the disk in bytes
	Step   string `json:"step"`
	Made   string `json:"made,omitempty"` // when the root file system was complete; empty if an older agent made it
}

// disk returns the ID of the guest's disk.
func (r record) disk() string { return cmp.Or(r.Disk, r.ID) }

func recordPath(name string) string { return path.Join(Records, name+".json") }

// readRecord returns the record of a guest; false if there is none.
func readRecord(h *host.Host, name string) (record, bool, error) {
	return readRecordIn(h, name, recordPath(name))
}

// readRecordIn returns the record of a guest in a file; false if there is no such file.
func readRecordIn(h *host.Host, name, file string) (record, bool, error) {
	data, err := h.Files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("reading the record of guest %s: %w", name, err)
	}
	r := record{}
	if err := json.Unmarshal(data, &r); err != nil || checkID(r.ID) != nil || checkID(r.disk()) != nil {
		return record{}, false, diag.Container.Hint(fmt.Errorf("%s is damaged", file),
			"write {\"id\": ID, \"driver\": \"nspawn\", \"step\": \"ready\"}, with the guest's ID of the cloud, into it")
	}
	r.Name = name
	return r, true, nil
}

// write stores a record; it is on the disk when write returns.
func (r record) write(h *host.Host) error {
	if err := h.MkdirAll(Records); err != nil {
		return err
	}
	return r.writeTo(h, recordPath(r.Name))
}

// writeTo stores a record in a file; it is on the disk when writeTo returns.
func (r record) writeTo(h *host.Host, file string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	return h.Files.Write(file, host.NewFile{Content: strings.NewReader(string(data) + "\n"), Mode: &mode,
		UID: -1, GID: -1, ReplaceLink: true})
}

// records returns the records of all guests, sorted by name.
func records(h *host.Host) ([]record, error) {
	names, err := h.Files.ReadDir(Records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	for _, file := range names {
		name, is := strings.CutSuffix(file, ".json")
		if !is || checkName(name) != nil {
			continue
		}
		r, _, err := readRecord(h, name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func checkName(name string) error {
	if cloud.CheckName(name) == nil {
		return nil
	}
	return diag.Argument.Hint(fmt.Errorf("%q is not the name of a guest", name),
		"write lower-case letters and digits, such as web1")
}

func checkID(id string) error {
	if cloud.CheckID(id) == nil {
		return nil
	}
	return diag.Argument.Hint(fmt.Errorf("%q is not the ID of a guest", id), "write the 32 digits of its machine ID")
}

// exists reports whether a path exists.
func exists(h *host.Host, file string) (bool, error) {
	_, err := h.Files.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// removeTree removes a directory and its content with its subvolumes. It does not cross to other file systems.
func removeTree(ctx context.Context, h *host.Host, guest, dir string) error {
	there, err := exists(h, dir)
	if err != nil || !there {
		return err
	}
	if err := removeNested(ctx, h, guest, dir); err != nil {
		return err
	}
	_, err = h.Tool(ctx, host.Tool{Argv: []string{"rm", "-rf", "--one-file-system", "--", dir}, Limit: hour,
		Changes: host.Subject{Kind: host.KindCommand, Name: "removal of guest " + guest}})
	return host.Failed(diag.Container, err, "removing "+dir, "see whether something is mounted or running there")
}
