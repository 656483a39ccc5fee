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

// Full reports whether an error says that a filesystem or a quota is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ExplainSpace adds to an error that says that there was no space for a release how to free some.
func ExplainSpace(err error) error {
	if Full(err) {
		return diag.WithHint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
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

// space is what there is for a file to grow, and how many bytes it takes. A filesystem that does not answer has all
// that is wanted.
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
