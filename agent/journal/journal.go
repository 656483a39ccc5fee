// Package journal keeps what converging replaced, so that it can be put back.
//
// A journal is a directory of chapters. A chapter belongs to a pair of releases and not to a run: the
// next tick of a timer adds to it or leaves it alone. It is one file that only grows. Each record in
// it carries a checksum over itself and all before it, so what a power cut left of the last one is
// told from what somebody changed: the first is dropped, the second is never acted on.
//
// Content is kept in pieces of a mebibyte, compressed, each once however many files have it. What
// is to be changed is written and synced before it changes; what it became is written after and
// synced along with whatever comes next.
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

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// version of the form of chapters; a newer one is refused rather than guessed at.
const version = 1

// Journal is a directory of chapters.
type Journal struct {
	Dir       string
	Limit     int64 // bytes of all chapters together; 0 keeps no journal
	FileLimit int64 // bytes of the largest file whose content is kept
}

// Header says what a chapter is about.
type Header struct {
	Pair    string    `json:"pair"`           // key of the pair of releases that converged
	Name    string    `json:"name"`           // of that pair, for people
	Over    string    `json:"over,omitempty"` // key of the pair that ran before; "" for none
	Started time.Time `json:"started"`
}

// Record is one thing that was changed, or a program that ran.
type Record struct {
	Chapter int
	Run     string
	Boot    string // ID of the boot that the run was in
	Seq     int    // within its chapter
	Change
	After  *image.Image // nil where a cut left none
	Undone *Undone      // nil while it stands
	Synced bool         // no power cut can take that back
	Begun  bool         // a restore of it has begun
}

// Change is what is written before a change.
type Change struct {
	Step    string       `json:"step,omitempty"` // function and ID of the state, or what else it was
	Subject host.Subject `json:"subject"`
	Before  *image.Image `json:"before,omitempty"` // nil for what cannot be taken back
	Lost    string       `json:"lost,omitempty"`   // why it cannot
	Secret  bool         `json:"secret,omitempty"` // nobody may be shown what it holds
}

// Undone is how a record was settled by a restore.
type Undone struct {
	Run  string `json:"run"`
	Left string `json:"left,omitempty"` // why it was left as it is; "" for one that was put back
}

// Damaged is a chapter that is not as it was written.
type Damaged struct {
	Path string
	At   int64
}

func (d *Damaged) Error() string {
	return fmt.Sprintf("the journal %s was changed by something else than this agent (at byte %d), so nothing is put back from it", d.Path, d.At)
}

// Hint says what can be done by hand.
func (d *Damaged) Hint() string {
	return fmt.Sprintf("look at the host, then set the chapter aside: corpus-agent changes; mv %s /root/; corpus-agent converge", d.Path)
}

// Newer is a chapter that a newer agent wrote.
type Newer struct {
	Path    string
	Version int
}

func (n *Newer) Error() string {
	return fmt.Sprintf("the journal %s is of version %d, and this agent knows up to %d, so nothing is put back from it", n.Path, n.Version, version)
}

// Hint says who can read it.
func (n *Newer) Hint() string {
	return "install the agent that wrote it, or a newer one, and run there: corpus-agent rollback --converge"
}

const suffix = ".journal"

// path is the file of a chapter.
func (j Journal) path(number int) string {
	return filepath.Join(j.Dir, fmt.Sprintf("%06d%s", number, suffix))
}

// numbers lists the chapters, oldest first.
func (j Journal) numbers() ([]int, error) {
	entries, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
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

// Chapters reads all chapters, oldest first. With an error come those that are newer than the one
// that could not be read.
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

// Last reads the newest chapter; nil where there is none.
func (j Journal) Last() (*Chapter, error) {
	numbers, err := j.numbers()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	return j.read(numbers[len(numbers)-1])
}

// Dirs are the directories of the files that the newest run replaced.
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
	for name := range c.coming {
		dirs = append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// sizeBut is how much all chapters but one take on disk.
func (j Journal) sizeBut(one int) (total int64, err error) {
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

// Prune removes the oldest chapters above keep.
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

// dropOldest makes room by removing the oldest chapter before the given one.
func (j Journal) dropOldest(before int) (bool, error) {
	numbers, err := j.numbers()
	if err != nil || len(numbers) == 0 || numbers[0] >= before {
		return false, err
	}
	return true, durable.Remove(j.path(numbers[0]))
}

// BootID names the time since the machine was booted.
func BootID(h *host.Host) string {
	id, err := h.Files.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// explain gives an error of writing its hint.
func explain(err error) error {
	if err == nil || diag.HintOf(err) != "" {
		return err
	}
	return diag.WithHint(fmt.Errorf("writing the journal: %w", err), "%s; or keep no journal, with undo.limit: 0 in agent.yaml", cure(err))
}

// cure is what to do about the filesystem that could not be written.
func cure(err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "mount the filesystem of /var/lib/corpus for writing; `dmesg` says why the kernel made it read-only"
	}
	return "make room on the filesystem of /var/lib/corpus"
}
