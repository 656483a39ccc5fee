// Package journal records what a converge run replaces, so that package undo can restore it.
//
// A journal is a directory of chapters. A chapter belongs to a pair of releases and not to a run: a later run of the
// same pair appends to it if it changes something. A chapter is one append-only file. Each frame of it carries a
// checksum over itself and all frames before it, which distinguishes a last frame that a power failure left incomplete
// from a file that another program changed: the journal drops the former, and restores nothing from the latter.
//
// Content is kept in compressed pieces of up to a mebibyte. A chapter has a piece only once, even if several files
// contain it. The journal writes and syncs the image of a subject before it changes. It writes the image after the
// change later, and syncs it together with the records that follow.
package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// version is the version of the chapter format. The journal refuses chapters of a newer version.
const version = 1

// Journal is a directory of chapters.
type Journal struct {
	Dir       string
	Limit     int64 // total size of all chapters in bytes; 0 disables the journal
	FileLimit int64 // size in bytes of the largest file whose content is kept
}

// Header names the pair of releases that a chapter belongs to.
type Header struct {
	Pair    string    `json:"pair"`              // bytes of the pair of releases that converged
	Service string    `json:"service,omitempty"` // of that pair; see ledger.Key
	Name    string    `json:"name"`              // of that pair, for messages
	Over    string    `json:"over,omitempty"`    // bytes of the pair that ran before; "" for none
	OverOf  string    `json:"over_service,omitempty"`
	Started time.Time `json:"started"`
}

// Key returns the key of the pair that converged.
func (h Header) Key() ledger.Key { return ledger.Key{Bytes: h.Pair, Service: h.Service} }

// OverKey returns the key of the pair that ran before.
func (h Header) OverKey() ledger.Key { return ledger.Key{Bytes: h.Over, Service: h.OverOf} }

// Record is one change of a subject, or a program that ran.
type Record struct {
	Chapter int
	Run     string
	Boot    string // boot ID of the host during the run
	Seq     int    // index in the chapter
	Change
	After  *image.Image // nil if the run was interrupted before it was taken
	Undone *Undone      // nil if no restore has settled the record
	Synced bool         // the host's filesystems were synced after the change
	Begun  bool         // a restore of the record has begun
}

// Change is the part of a record that is written before the change.
type Change struct {
	Step    string       `json:"step,omitempty"` // function and ID of the state, or the stage of the run
	Subject host.Subject `json:"subject"`
	Before  *image.Image `json:"before,omitempty"` // nil if the change cannot be undone
	Lost    string       `json:"lost,omitempty"`   // why the change cannot be undone
	Secret  bool         `json:"secret,omitempty"` // the content must not be shown
	Shown   Names        `json:"shown,omitempty"`  // see Redactor
}

// Undone is the result of restoring a record.
type Undone struct {
	Run  string `json:"run"`
	Left string `json:"left,omitempty"` // why the subject was not restored; "" if it was
}

// Damaged is the error of a chapter that another program changed. At is the offset of the first frame that is not
// valid.
type Damaged struct {
	Path string
	At   int64
}

func (d *Damaged) Error() string {
	return fmt.Sprintf("the journal %s was changed by another program (at byte %d), so nothing is restored from it",
		d.Path, d.At)
}

// Hint returns how to continue without the chapter.
func (d *Damaged) Hint() string {
	return diag.Journal.Coded(fmt.Sprintf(
		"look at the host, then set the chapter aside: corpus-agent changes; mv %s /root/; corpus-agent converge", d.Path))
}

// Newer is the error of a chapter that a newer agent wrote.
type Newer struct {
	Path    string
	Version int
}

func (n *Newer) Error() string {
	return fmt.Sprintf("the journal %s is of version %d, and this agent knows up to %d, so nothing is restored from it",
		n.Path, n.Version, version)
}

// Hint returns how to restore from the chapter.
func (n *Newer) Hint() string {
	return diag.Journal.Coded(
		"install the agent that wrote it, or a newer one, and run there: corpus-agent rollback --converge")
}

const suffix = ".journal"

// path returns the file name of a chapter.
func (j Journal) path(number int) string {
	return filepath.Join(j.Dir, fmt.Sprintf("%06d%s", number, suffix))
}

// numbers returns the numbers of all chapters, oldest first.
func (j Journal) numbers() ([]int, error) {
	entries, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unread(err)
	}
	var all []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if n, err := strconv.Atoi(name); ok && err == nil && n > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, nil
}

// Chapters reads all chapters, oldest first. If one cannot be read, Chapters returns the newer ones with the error.
func (j Journal) Chapters() ([]*Chapter, error) {
	numbers, err := j.numbers()
	if err != nil {
		return nil, err
	}
	var all []*Chapter
	for _, n := range slices.Backward(numbers) {
		c, readErr := j.read(n)
		if readErr != nil {
			err = readErr
			break
		}
		all = append(all, c)
	}
	slices.Reverse(all)
	return all, err
}

// Last reads the newest chapter. It returns nil if the journal is empty.
func (j Journal) Last() (*Chapter, error) {
	numbers, err := j.numbers()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	return j.read(numbers[len(numbers)-1])
}

// Dirs returns the directories of the files that the newest run changed or may have created.
func (j Journal) Dirs() ([]string, error) {
	c, err := j.Last()
	if err != nil || c == nil {
		return nil, err
	}
	var dirs []string
	for _, r := range c.Records {
		if r.Subject.Kind == host.KindFile && r.Run == c.Runs[len(c.Runs)-1] {
			dirs = append(dirs, path.Dir(r.Subject.Name))
		}
	}
	for name := range c.planned {
		dirs = append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// sizeExcept returns the size in bytes of all chapters except number one.
func (j Journal) sizeExcept(one int) (total int64, err error) {
	numbers, err := j.numbers()
	for _, n := range numbers {
		info, err := os.Stat(j.path(n))
		if found, err := walk.Found(err); err != nil {
			return total, err
		} else if found && n != one {
			total += info.Size()
		}
	}
	return total, err
}

// Prune removes the oldest chapters until keep are left. It never removes the newest chapter.
func (j Journal) Prune(keep int) error {
	numbers, err := j.numbers()
	if err != nil || len(numbers) <= keep {
		return err
	}
	var errs []error
	for _, n := range numbers[:len(numbers)-max(keep, 1)] {
		errs = append(errs, durable.Remove(j.path(n)))
	}
	return errors.Join(errs...)
}

// dropOldest removes the oldest chapter with a number less than before, and reports whether there was one.
func (j Journal) dropOldest(before int) (bool, error) {
	numbers, err := j.numbers()
	if err != nil || len(numbers) == 0 || numbers[0] >= before {
		return false, err
	}
	return true, durable.Remove(j.path(numbers[0]))
}

// BootID returns the kernel's ID of the current boot, or "" if it cannot be read.
func BootID(h *host.Host) string {
	id, err := h.Files.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// unread adds context and a hint to an error of reading the journal.
func unread(err error) error {
	hint := "check the disk as root (dmesg, ls -la /var/lib/corpus/journal)"
	switch {
	case errors.Is(err, fs.ErrPermission):
		hint = "run it as root"
	case errors.Is(err, walk.ErrNoFile) || errors.Is(err, syscall.ENOTDIR):
		hint = "the next run sets aside what is not a journal: corpus-agent deploy; or keep no journal, with undo.limit: 0 " +
			"in agent.yaml"
	}
	return diag.Journal.Hint(fmt.Errorf("reading the journal: %w", err), "%s", hint)
}

// explain adds context and a hint to an error of writing the journal. It does not change nil or an error with a hint.
func explain(err error) error {
	if err == nil || diag.HintOf(err) != "" {
		return err
	}
	return diag.Journal.Hint(fmt.Errorf("writing the journal: %w", err),
		"%s; or keep no journal, with undo.limit: 0 in agent.yaml", remedy(err))
}

// remedy returns the hint for a filesystem that cannot be written.
func remedy(err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "mount the filesystem of /var/lib/corpus for writing; `dmesg` says why the kernel made it read-only"
	}
	return "make room on the filesystem of /var/lib/corpus"
}
