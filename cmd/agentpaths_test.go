package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheAgentOpensNoPathOfAUserByName keeps calls out of the agent that name a file in a directory which another user can
// change: between the check of such a path and its use it may mean something else. Package walk goes there by descriptors.
// Each file that may name paths stands here with the reason.
func TestTheAgentOpensNoPathOfAUserByName(t *testing.T) {
	const (
		state    = "the state directory, which is root's and 0700: see closeState"
		project  = "a project's directory, its releases, archives, pillar and links, which are root's: see reclaim"
		release  = "a release's code, which is root's and was compared with its list before: see intact"
		etc      = "the host's configuration, which is root's"
		kernel   = "/proc and /sys"
		operator = "a path that an operator gave"
	)
	allowed := map[string]string{
		"agent/again.go":               project + "; os.Root keeps the comparison inside the release",
		"agent/audit.go":               state + "; os.Root keeps the comparison inside the release, and it opens without waiting",
		"agent/book.go":                state + ", and " + project,
		"agent/complete.go":            project,
		"agent/config/damaged.go":      etc,
		"agent/config/exposed.go":      "asks for modes of files that the configuration names, and nothing else",
		"agent/deploy.go":              project,
		"agent/doubt.go":               etc,
		"agent/fetch/arrive.go":        state,
		"agent/fetch/delta.go":         state + "; what is read of a release is verified by its digest",
		"agent/fetch/fetch.go":         state + ", and " + project,
		"agent/fetch/held.go":          project,
		"agent/fetch/lists.go":         state,
		"agent/fetch/place.go":         state + ", and " + project,
		"agent/fetch/prune.go":         project + "; os.RemoveAll goes by descriptors and follows no link",
		"agent/hold.go":                state,
		"agent/hook/hook.go":           release,
		"agent/intact.go":              state + "; os.Root keeps the comparison inside the release",
		"agent/journal/journal.go":     state,
		"agent/journal/read.go":        state,
		"agent/journal/write.go":       state,
		"agent/ledger/file.go":         state,
		"agent/link/link.go":           project,
		"agent/local.go":               project + ", and " + operator,
		"agent/lock/lock.go":           state,
		"agent/minion/minion.go":       operator,
		"agent/notify/program.go":      "sendmail, of the host's own programs",
		"agent/notify/webhook.go":      etc,
		"agent/private.go":             "asks for modes of a file and nothing else",
		"agent/own.go":                 kernel,
		"agent/report/index.go":        state,
		"agent/strays.go":              "links of /srv, in directories that are root's, and only looked at",
		"agent/procedure/archive.go":   "a temporary directory among archives, which are root's",
		"agent/procedure/git/git.go":   project,
		"agent/procedure/procedure.go": release,
		"agent/procedure/settings.go":  "a file that the caller names on the command line",
		"agent/procedures.go":          state,
		"agent/project.go":             project,
		"agent/projectsync.go":         "links below /srv/salt and /srv/pillar, which are root's",
		"agent/refusals.go":            state,
		"agent/repair.go":              state + ", and " + project,
		"agent/report/archive.go":      state,
		"agent/run.go":                 state,
		"agent/self/restore.go":        etc + ", and the agent's own program and units",
		"agent/self/self.go":           etc + ", and the agent's own program and units",
		"agent/self/try.go":            "refuses a path of which a part is not root's",
		"agent/service/evidence.go":    kernel + ", and names of releases",
		"agent/session.go":             operator,
		"agent/suits.go":               "the host's loaders and libraries, whose existence is asked for",
		"agent/temporary.go":           state,
		"agent/units.go":               project,
	}
	calls := regexp.MustCompile(`\bos\.(Open|OpenFile|OpenRoot|Create|CreateTemp|MkdirTemp|ReadFile|WriteFile|Chown|Lchown|Chmod|Chtimes|Remove|RemoveAll|Rename|Symlink|Link|Mkdir|MkdirAll|Stat|Lstat|ReadDir|Readlink|Truncate|DirFS|CopyFS)\(|filepath\.(Walk|WalkDir|EvalSymlinks|Glob)\(|\b(unix|syscall)\.(Open|Chown|Lchown|Chmod|Unlink|Rename|Rename2|Renameat2|Symlink|Link|Mkdir|Rmdir|Truncate)\(`)
	used := map[string]bool{}
	err := filepath.WalkDir("../agent", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		for i, line := range strings.Split(string(data), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if !calls.MatchString(code) {
				continue
			}
			used[name] = true
			if allowed[name] == "" {
				t.Errorf("%s:%d: %s: use a safe walk.Root, or give the reason here why no other user can change the path", name, i+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("%s names no path and needs no exception", name)
		}
	}
}
