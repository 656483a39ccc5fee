package site

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ExplainDisk adds a hint to a disk error that has none.
func ExplainDisk(err error) error {
	switch {
	case err == nil || diag.HintOf(err) != "":
		return err
	case fetch.Full(err):
		return diag.Disk.Hint(err, "make room on that disk, or raise the quota; the next run tries again")
	case errors.Is(err, syscall.EROFS):
		return diag.Disk.Hint(err,
			"mount that filesystem for writing; if it was not made read-only on purpose, its disk may be failing: see `dmesg`")
	case errors.Is(err, syscall.EIO):
		return diag.Disk.Hint(err, "the disk may be failing: see `dmesg`; the next run tries again")
	case errors.Is(err, syscall.ELOOP):
		return walk.ExplainLoop(err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return diag.Limits.Hint(err,
			"the limit on open files is reached: see `ulimit -n` and LimitNOFILE= of the unit, and who holds files open: `lsof`")
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return diag.Limits.Hint(err,
			"the host is short of memory or processes: see `free -m`, `ulimit -u` and MemoryMax= and TasksMax= of the unit")
	}
	return err
}

// leastState and leastFiles are how many bytes and inodes must be free in the agent's own directory for the ledger, the
// journal and the report of a run.
const (
	leastState = 64 << 10
	leastFiles = 16
)

// Unwritable returns the reason why the agent cannot write into its own directory, and nil if it can. It changes
// nothing: it asks the filesystem whether it is full or read-only.
func (s *Site) Unwritable() error {
	dir := s.Layout.State()
	left, err := walk.SpaceAt(dir)
	if err != nil {
		return nil //nolint:nilerr // a directory that does not exist yet is made, and what reads from it reports other errors
	}
	switch {
	case left.ReadOnly:
		return ExplainDisk(fmt.Errorf("%s cannot be written: %w", dir, syscall.EROFS))
	case left.Bytes < leastState:
		return ExplainDisk(fmt.Errorf("%s has %s left: %w", dir, diag.Size(left.Bytes), syscall.ENOSPC))
	case left.Files < leastFiles:
		return ExplainDisk(fmt.Errorf("%s has %s left: %w", dir, diag.Count(int(left.Files), "inode"), syscall.ENOSPC))
	}
	return nil
}
