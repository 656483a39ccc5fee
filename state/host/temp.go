package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
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
	if err != nil || strings.Contains(path, "/"+tempPrefix) { // a temporary directory is removed as a whole
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

// TempRoot returns the directory in which temporary files and directories are made: /tmp, or else one below /var, if
// another user could rename what is in it. That is so in a directory that others may write to and that has no sticky
// bit: a private directory of root in it can be exchanged for another one with the same name.
func (h *Host) TempRoot() (string, error) {
	var reasons []error
	for _, dir := range []string{"/tmp", "/var/tmp", "/var/lib"} {
		resolved, err := h.Files.Resolve(dir)
		if err == nil {
			err = h.checkTempRoot(resolved)
		}
		if err == nil {
			return dir, nil
		}
		reasons = append(reasons, err)
	}
	return "", diag.Exposed.Hint(fmt.Errorf("no directory for temporary files is safe: %w", errors.Join(reasons...)),
		"give /tmp to root, with its usual mode: chown root:root /tmp && chmod 1777 /tmp")
}

// checkTempRoot returns an error if a user other than root and the agent's own can rename what is in a directory, or a
// directory above it.
func (h *Host) checkTempRoot(dir string) error {
	for ; dir != "/"; dir = path.Dir(dir) {
		info, err := h.Files.Stat(dir)
		if err != nil {
			return err
		}
		ours := func(id, own int) bool { return id == 0 || id == own }
		shared := info.Mode&0o002 != 0 || info.Mode&0o020 != 0 && !ours(info.GID, os.Getegid())
		switch {
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		case !ours(info.UID, os.Geteuid()):
			return fmt.Errorf("%s belongs to user %d", dir, info.UID)
		case shared && info.Mode&fs.ModeSticky == 0:
			return fmt.Errorf("other users may write to %s, and it has no sticky bit", dir)
		}
	}
	return nil
}

// TempDir makes a directory with a TempName in TempRoot, in which only root and the agent's own user can create files.
// Files that programs run or interpret are put into one each, since interpreters look for other files beside them:
// python3 imports modules from the directory of a script, and in /tmp each user can put one. The caller must call
// remove.
func (h *Host) TempDir(pattern string, mode fs.FileMode) (dir string, remove func() error, err error) {
	root, err := h.TempRoot()
	if err != nil {
		return "", nothing, err
	}
	dir = path.Join(root, TempName(pattern))
	remove = func() error { return h.Files.RemoveAll(dir) }
	if err := h.Files.Mkdir(dir, mode); err != nil {
		return "", nothing, errors.Join(err, remove())
	}
	return dir, remove, nil
}

func nothing() error { return nil }

// TempFor creates a file that only one user can read, in a directory of its own as of TempDir: there, not even that
// user can put another file. The user is "" for the agent's own. The mode may give permissions only to the owner. An
// account that does not exist is an error. The caller must call remove.
func (h *Host) TempFor(user, name string, content []byte, mode fs.FileMode) (file string, remove func() error,
	err error) {
	owner, group, err := h.ownerOf(user)
	if err != nil {
		return "", nothing, err
	}
	dir, remove, err := h.TempDir(strings.TrimSuffix(name, path.Ext(name))+"-*", 0o711)
	if err != nil {
		return "", nothing, err
	}
	file, mode = dir+"/"+name, mode&0o700
	err = h.Files.Write(file, NewFile{Content: bytes.NewReader(content), Mode: &mode, UID: owner, GID: group})
	if err != nil {
		return "", nothing, errors.Join(err, remove())
	}
	return file, remove, nil
}

// ownerOf returns the IDs of a user and of its group; -1 for both if no user is named.
func (h *Host) ownerOf(user string) (owner, group int, err error) {
	if user == "" {
		return -1, -1, nil
	}
	u, found, err := h.Accounts.User(user)
	if err == nil && !found {
		err = diag.Prerequisite.Hint(fmt.Errorf("user %s does not exist", user),
			"make it in a user.present state that this one requires")
	}
	return u.UID, u.GID, err
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
