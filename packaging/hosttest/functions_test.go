//go:build hosts

package hosttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// family is a package of state functions whose hosts_test.go has tests that change the machine. They are skipped
// elsewhere, and need a disposable host.
type family struct {
	name    string
	dir     string
	program string
	tests   string // pattern of their names
}

func families(t *testing.T) []family {
	t.Helper()
	var all []family
	for _, pattern := range []string{"*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(repository, "state/module", pattern, "hosts_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(text), "//go:build hosts") {
				all = append(all, compile(t, file, string(text)))
			}
		}
	}
	if len(all) < 2 {
		t.Fatalf("%d families have such tests", len(all))
	}
	return all
}

func compile(t *testing.T, file, text string) family {
	t.Helper()
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	f := family{name: filepath.Base(filepath.Dir(file)), dir: filepath.Dir(file),
		tests: "^(" + strings.Join(names, "|") + ")$"}
	f.program = filepath.Join(t.TempDir(), f.name)
	cmd := exec.Command("go", "test", "-c", "-tags", "hosts", "-o", f.program, ".")
	cmd.Dir, cmd.Env = f.dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return f
}

// TestFunctionsOnRealHosts runs those tests on hosts of every suite.
func TestFunctionsOnRealHosts(t *testing.T) {
	all := families(t)
	for _, suite := range lab.Suites() {
		for _, f := range all {
			t.Run(suite+"/"+f.name, func(t *testing.T) {
				h := lab.Boot(t, lab.Options{Base: lab.Standard(suite)})
				h.Copy(f.program, "/opt/test/"+f.name)
				r := h.Run("-p", "WorkingDirectory=/opt/test", "-E", "CORPUS_THROWAWAY_HOST=1", "-E", "HOME=/root",
					"/opt/test/"+f.name, "-test.v", "-test.count=1", "-test.run="+f.tests)
				passed := strings.Contains(r.Out, "--- PASS")
				switch {
				case r.Code == 0 && !passed && strings.Contains(r.Out, "--- SKIP"):
					t.Skipf("the hosts lack a requirement of the tests:\n%s", r.Out)
				case r.Code != 0 || !passed:
					t.Errorf("exit code %d\n%s%s", r.Code, r.Out, r.Err)
				}
			})
		}
	}
}
