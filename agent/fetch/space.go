package fetch

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Full reports whether an error means that a filesystem or a quota is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ExplainSpace adds a hint about freeing space to the error of a release that did not fit on the disk.
func ExplainSpace(err error) error {
	if Full(err) {
		return diag.Disk.Hint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
	}
	return err
}

// hasSpace checks that a file can grow to a length, before anything is fetched that could not be kept.
func hasSpace(file string, length int64) error {
	left, size := space(file)
	if need := length - size; need > left.Bytes {
		return fmt.Errorf("%s takes %s more, and there are %s: %w", file, diag.Size(need), diag.Size(left.Bytes),
			syscall.ENOSPC)
	}
	return nil
}

// exceedsFreeSpace reports whether a file takes more space than it leaves to all other users.
func exceedsFreeSpace(file string) bool {
	left, size := space(file)
	return left.Unreserved < size
}

// space returns the free space for a file to grow, and the number of bytes that it uses. If the filesystem cannot be
// queried, the free space counts as sufficient.
func space(file string) (left walk.Space, size int64) {
	left, err := walk.SpaceAt(file)
	if err != nil {
		return walk.Space{Bytes: math.MaxInt64, Unreserved: math.MaxInt64}, 0
	}
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err == nil {
		size = s.Blocks * 512
	}
	return left, size
}
