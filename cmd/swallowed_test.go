package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoErrorOfLookingIsSwallowed keeps calls out of the source that take a file which cannot be read for an absent one:
// filepath.Glob, which keeps silent about directories, and reading with the error dropped. Package walk has Found and Glob.
func TestNoErrorOfLookingIsSwallowed(t *testing.T) {
	allowed := map[string]string{
		"agent/own.go":                  "/proc of processes that may have ended",
		"artifact/durable/scratch.go":   "what a killed program left is removed by a later one",
		"agent/self/self.go":            "what the units are made of is compared before and after; what cannot be read is the same in both",
		"agent/service/evidence.go":     "a release whose directory is not listed is told from its path",
		"artifact/walk/found.go":        "Glob itself",
		"state/host/listeners.go":       "/proc of processes that may have ended",
		"state/host/packages_client.go": "the name of a process, for a message",
		"state/host/packages_lock.go":   "the name of a process, for a message",
		"state/host/process.go":         "/proc of a process that may have ended",
	}
	swallows := regexp.MustCompile(`filepath\.Glob\(|, _ :?= os\.(Stat|Lstat|ReadFile|ReadDir|Readlink|Open)\(`)
	for _, top := range []string{"agent", "artifact", "grains", "packaging", "state"} {
		err := filepath.WalkDir("../"+top, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/hosttest/") {
				return err
			}
			data, err := os.ReadFile(path)
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			for i, line := range strings.Split(string(data), "\n") {
				if code, _, _ := strings.Cut(line, "//"); swallows.MatchString(code) && allowed[name] == "" {
					t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
