package failure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// noexec is the error of a program that was not started, on a host whose releases, or whose agent's directory, are on a
// filesystem that is mounted with the option noexec. It would fail every release, so none is at fault.
type noexec struct {
	cause error
	mount string // the mount point on the host
}

// Error returns the cause with the mount point.
func (n *noexec) Error() string {
	return fmt.Sprintf("%v: %s is mounted with the option noexec, so no program below it can be started", n.cause, n.mount)
}

// Unwrap returns the failure to start.
func (n *noexec) Unwrap() error { return n.cause }

// Unexecuted returns err with the mount point and a hint, if err says that a program was refused and the releases or
// the agent's own directory are mounted noexec. Otherwise it returns err unchanged.
func Unexecuted(l layout.Layout, err error) error {
	if known := new(noexec); err == nil || errors.As(err, &known) || !refusedProgram(err) {
		return err
	}
	dirs := []string{l.Projects()}
	if state := l.State(); strings.Contains(err.Error(), l.Inside(state)+"/") {
		dirs = append(dirs, state) // it has no programs of releases, and is mounted noexec on many hosts
	}
	for _, dir := range dirs {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 {
			mount := l.Inside(mountOf(dir))
			return diag.Path.Hint(&noexec{cause: err, mount: mount},
				"mount -o remount,exec %s, and take noexec out of its options in /etc/fstab or its mount unit; the next run "+
					"tries again", mount)
		}
	}
	return err
}

// AlsoUnexecuted reports whether programs that the host does not start failed the deploy, and nothing else failed
// during the rollback. Nothing more can be done before the filesystem is mounted without noexec.
func AlsoUnexecuted(l layout.Layout, cause, back error) bool {
	return also[*noexec](cause, back, func(err error) error { return Unexecuted(l, err) })
}

// also reports whether cause has an error of type E, and each part of back has one after explain was applied to it.
func also[E error](cause, back error, explain func(error) error) bool {
	is := func(err error) bool {
		_, is := errors.AsType[E](err)
		return is
	}
	return back != nil && is(cause) &&
		!slices.ContainsFunc(partsOfError(back), func(err error) bool { return !is(explain(err)) })
}

// partsOfError returns the errors that errors.Join joined, or the single error.
func partsOfError(err error) []error {
	return eachIn(err, func(err error) ([]error, bool) {
		_, joined := err.(interface{ Unwrap() []error }) //nolint:errorlint // eachIn walks the tree
		if joined {
			return nil, false
		}
		return []error{err}, true
	})
}

// refusedProgram reports whether an error, or the output of a failed program, means that a program may not be started.
// systemd reports that with the status 203.
func refusedProgram(err error) bool {
	return errors.Is(err, syscall.EACCES) || refusal().MatchString(err.Error())
}

var refusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)permission denied|\bstatus 203\b|\b203/EXEC\b`)
})

// mountOf returns the mount point of a directory, or the directory if the mount point is not found.
func mountOf(dir string) string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	real, unresolved := filepath.EvalSymlinks(dir)
	if err != nil || unresolved != nil {
		return dir
	}
	found := ""
	for _, m := range walk.Mounts(string(table)) {
		at := walk.MountWord(m.Place)
		if at == real || strings.HasPrefix(real, strings.TrimSuffix(at, "/")+"/") {
			if len(at) >= len(found) {
				found = at
			}
		}
	}
	if found == "" {
		return dir
	}
	return found
}
