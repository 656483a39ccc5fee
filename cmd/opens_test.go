package cmd_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGivenFilesAreOpenedInOnePlace checks that the sources make no calls that block on a named pipe, which may replace
// any file that a person, a setting or a tree names: walk.OpenGiven and walk.OpenFile do not block. The files of a
// directory with a separate test, ../agent, are exempt if they use their own paths.
func TestGivenFilesAreOpenedInOnePlace(t *testing.T) {
	const own, kernel = "a file or directory that the program made", "/proc, /sys and cgroups"
	allowed := map[string]string{
		"agent/self/self.go": "the agent's own program and units", "agent/self/restore.go": "the agent's own program",
		"agent/self/systemctl.go": kernel, "agent/lock/removed.go": own,
		"agent/lock/sharers.go":   kernel,
		"agent/failure/noexec.go": kernel, "artifact/walk/lease.go": kernel, "artifact/process/tree.go": kernel,
		"artifact/process/adopt.go": kernel, "artifact/process/list.go": kernel, "artifact/process/group.go": kernel,
		"artifact/source/git.go": own, "artifact/walk/found.go": "opens path/., which is a directory or an error",
		"artifact/durable/scratch.go": kernel, "artifact/store/dir/lock.go": kernel,
		"state/host/binding/users.go": kernel, "state/host/packages/lock.go": kernel, "state/host/packages/client.go": kernel,
		"state/host/processes/sockets.go": kernel, "state/host/processes/processes.go": kernel, "state/host/temp.go": kernel,
		"grains/ec2/ec2.go": kernel, "grains/kernel.go": kernel, "packaging/pipeline/run.go": own,
		"packaging/pipeline/outputs.go": own, "packaging/python/relocate.go": own, "packaging/builder/system.go": own,
		"cmd/cli/hints/hints.go": "a test's own files",
	}
	calls := regexp.MustCompile(`\bos\.(Open|OpenRoot|ReadFile)\(`)
	used := map[string]bool{}
	for _, top := range []string{"agent", "artifact", "cmd", "grains", "packaging", "state"} {
		err := filepath.WalkDir("../"+top, func(path string, _ fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				regexp.MustCompile(`/[a-z]+test/`).MatchString(name) {
				return err
			}
			uses, err := usesOf(path, calls)
			for _, u := range uses {
				used[name] = true
				if allowed[name] == "" {
					t.Errorf("%s:%d: %s: %s: use walk.OpenFile or ReadFile, or OpenGiven or ReadGiven for what a person names", name,
						u.line, u.function, u.text)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("%s opens no file and needs no exception", name)
		}
	}
}
