package self

import (
	"slices"
	"strings"
	"testing"
)

func TestUnitsThatCommandsWaitFor(t *testing.T) {
	for line, want := range map[string]string{
		"systemctl restart web":                         "web",
		"/bin/systemctl --quiet start a.service b.path": "a.service b.path",
		"systemctl reload-or-restart web@1":             "web@1",
		"systemctl --no-block restart web":              "",
		"systemctl stop web":                            "",
		"systemctl is-active web":                       "",
		"systemctl":                                     "",
	} {
		if got := awaited(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s waits for %q, want %q", line, got, want)
		}
	}
}
