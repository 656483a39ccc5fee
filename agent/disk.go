package agent

import (
	"errors"
	"syscall"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// full reports whether there was no room for something.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// diskFailed reports whether a disk of this host is what an error is about. Another release would have
// met it as well.
func diskFailed(err error) bool {
	return full(err) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EROFS)
}

// explainDisk says what to do about a disk, where nobody has said it yet.
func explainDisk(err error) error {
	switch {
	case err == nil || diag.HintOf(err) != "":
		return err
	case full(err):
		return diag.WithHint(err, "make room on that disk, or raise the quota; the next run tries again")
	case errors.Is(err, syscall.EROFS):
		return diag.WithHint(err, "mount that filesystem for writing; if nobody made it read-only, its disk may be failing: see `dmesg`")
	case errors.Is(err, syscall.EIO):
		return diag.WithHint(err, "the disk may be failing: see `dmesg`; the next run tries again")
	}
	return err
}
