//go:build hosts

package hosttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// TestFunctionsOnRealHosts runs those tests of state functions that change the machine they run on.
// They lie beside the functions, skip everywhere else, and want a host to throw away.
func TestFunctionsOnRealHosts(t *testing.T) {
	programs := t.TempDir()
	for _, family := range []string{"pkg", "service"} {
		cmd := exec.Command("go", "test", "-c", "-tags", "hosts", "-o", filepath.Join(programs, family), "./state/module/"+family)
		cmd.Dir, cmd.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, suite := range lab.Suites() {
		for _, family := range []string{"pkg", "service"} {
			t.Run(suite+"/"+family, func(t *testing.T) {
				h := lab.Boot(t, lab.Options{Base: lab.Standard(suite)})
				h.Copy(filepath.Join(programs, family), "/opt/test/"+family)
				h.CopyTree(filepath.Join(repository, "state/module", family, "testdata"), "/opt/test/testdata")
				r := h.Run("-p", "WorkingDirectory=/opt/test", "-E", "CORPUS_THROWAWAY_HOST=1", "-E", "HOME=/root", "/opt/test/"+family, "-test.v", "-test.count=1")
				if r.Code != 0 {
					t.Errorf("exit code %d\n%s%s", r.Code, r.Out, r.Err)
				}
			})
		}
	}
}
