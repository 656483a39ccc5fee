// Package descent has the limits and checks that are common to all walks through directories of users: the maximum
// depth, and which links point out of the directory.
package descent

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// MostLevels is the number of levels below a directory in which states read and change files by path. A user can create
// a tree of 10,000 levels quickly; the time to read all its paths grows with the square of the depth.
const MostLevels = 256

// TooDeep reports whether a directory, which is the given number of levels below the start of a walk by paths, is too
// deep for the walk, or has entries whose paths may be too long for system calls.
func TooDeep(dir string, level int) bool {
	return level > MostLevels || len(dir)+unix.NAME_MAX+1 >= unix.PathMax
}

// Enter must be called by a walk by paths before it lists a directory. It returns an error if ctx is done or the
// directory is [TooDeep].
func Enter(ctx context.Context, dir string, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !TooDeep(dir, level) {
		return nil
	}
	const text = "%s lies %d levels deep, and directories are walked through for %d levels and paths of %d bytes"
	return host.Unsuitable(dir, diag.Path.Hint(fmt.Errorf(text, walk.Clip(dir), level, MostLevels, unix.PathMax),
		"see who created it; file.absent removes trees of any depth"))
}
