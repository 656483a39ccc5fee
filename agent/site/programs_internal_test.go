package site

import (
	"slices"
	"testing"
)

// TestSearchedDirectoriesHaveTheirReason distinguishes the directories of PATH from others with programs of the system.
func TestSearchedDirectoriesHaveTheirReason(t *testing.T) {
	dirs := searched("/opt/tools:/usr/bin")
	for _, want := range []program{{"PATH", "/opt/tools"}, {"PATH", "/usr/bin"}, {"the system's programs", "/usr/sbin"}} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%v is not among %v", want, dirs)
		}
	}
	if slices.Contains(dirs, program{"the system's programs", "/usr/bin"}) {
		t.Errorf("/usr/bin is twice among %v", dirs)
	}
}
