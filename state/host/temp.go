package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"golang.org/x/sys/unix"
)

// tempPrefix starts the names of temporary files, as in artifact/durable, whose Sweep removes them.
const tempPrefix = ".corpus-tmp-"

// temporaries reports the directories in which temporary files are created, each once.
type temporaries struct {
	report func(dir string)

	mu       sync.Mutex
	reported map[string]bool
}

// in reports a directory in which a file is about to be created. Its path is resolved, since links may lead elsewhere
// by the time the file is searched for.
func (t *temporaries) in(dir int) {
	if t.report == nil {
		return
	}
	path, err := os.Readlink(walk.Handle(dir))
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported[path] {
		return
	}
	if t.reported == nil {
		t.reported = map[string]bool{}
	}
	t.reported[path] = true
	t.report(path)
}

// TempName returns a random file name that starts with tempPrefix. A * in the pattern is replaced by the random number.
func TempName(pattern string) string {
	before, after, _ := strings.Cut(pattern, "*")
	return fmt.Sprintf(tempPrefix+"%s%016x%s", before, rand.Uint64(), after)
}

// TempFile creates a file in /tmp with the given content and a TempName. The caller must remove it.
func (h *Host) TempFile(pattern string, content []byte, mode fs.FileMode) (string, error) {
	return h.TempCopy(pattern, bytes.NewReader(content), mode)
}

// TempFor is like TempFile for a file that only the programs of one user can read. The user is "" for the agent's own.
// The mode may give permissions only to the owner. An account that does not exist is an error.
func (h *Host) TempFor(user, pattern string, content []byte, mode fs.FileMode) (string, error) {
	owner, group := -1, -1
	if user != "" {
		u, found, err := h.Accounts.User(user)
		if err == nil && !found {
			err = diag.Prerequisite.Hint(fmt.Errorf("user %s does not exist", user),
				"make it in a user.present state that this one requires")
		}
		if err != nil {
			return "", err
		}
		owner, group = u.UID, u.GID
	}
	file, err := h.TempFile(pattern, content, mode&0o700)
	if err == nil && owner >= 0 {
		err = h.Files.Chown(file, owner, group)
	}
	if err != nil {
		return "", errors.Join(err, h.Files.RemoveAll(file))
	}
	return file, nil
}

// TempCopy is like TempFile for content of any size.
func (h *Host) TempCopy(pattern string, content io.Reader, mode fs.FileMode) (string, error) {
	path := "/tmp/" + TempName(pattern)
	return path, h.Files.Write(path, NewFile{Content: content, Mode: &mode, UID: -1, GID: -1})
}

// umask returns the umask of the process. It reads /proc if possible: the system call also sets the umask, which would
// affect files that are created at the same time.
func umask() fs.FileMode {
	f, err := os.Open("/proc/self/status")
	if err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "Umask:"); ok {
				if n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32); err == nil {
					return fs.FileMode(n)
				}
			}
		}
	}
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	return fs.FileMode(mask)
}
