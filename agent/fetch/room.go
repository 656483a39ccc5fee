package fetch

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Full reports whether an error says that there was no room for something.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ExplainSpace adds to an error that says that there was no room for a release how to make some.
func ExplainSpace(err error) error {
	if Full(err) {
		return diag.WithHint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
	}
	return err
}

// room checks that a file can grow to a length, before anything is fetched that could not be kept.
func room(file string, length int64) error {
	free, _, size := space(file)
	if need := length - size; need > free {
		return fmt.Errorf("%s takes %s more, and there are %s: %w", file, diag.Size(need), diag.Size(free), syscall.ENOSPC)
	}
	return nil
}

// crowded reports whether a file takes more room than it leaves to all other users.
func crowded(file string) bool {
	_, others, size := space(file)
	return others < size
}

// space is how many bytes there are for a file to grow, how many of them are not reserved for root, and how
// many it takes. Filesystems that do not say have all that is wanted.
func space(file string) (free, others, size int64) {
	var fs unix.Statfs_t
	if err := unix.Statfs(file, &fs); err != nil || fs.Blocks == 0 {
		return math.MaxInt64, math.MaxInt64, 0
	}
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err == nil {
		size = s.Blocks * 512
	}
	return int64(fs.Bfree) * fs.Frsize, int64(fs.Bavail) * fs.Frsize, size
}
