package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestWhyShowsTheLastLinesOfAFailedHook checks that why does not print all of the output.
func TestWhyShowsTheLastLinesOfAFailedHook(t *testing.T) {
	var output strings.Builder
	for i := range 30 {
		fmt.Fprintf(&output, "line %d\r\n\n", i)
	}
	output.WriteString("migration 7 broke")
	r := &report.Report{
		Stages: []report.Stage{{Name: "pre-release", Error: "hook failed"}},
		Hooks: map[string][]hook.Result{"pre-release": {{Name: "10-migrate", Release: "myapp 2", Error: "exit status 3",
			Output: output.String()}}},
	}
	lines := strings.Split(firstFailure(r), "\n")
	if len(lines) != 11 || lines[0] != "pre-release hook 10-migrate of myapp 2: exit status 3" || lines[1] != "line 21" ||
		lines[10] != "migration 7 broke" {
		t.Errorf("why prints %q", lines)
	}
}
