package exec

import (
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

func TestUnitFiles(t *testing.T) {
	for file, want := range map[string]bool{
		"/etc/systemd/system/web.service": true, "/usr/lib/systemd/system/web.service": true, "/etc/init.d/web": true,
		"/etc/systemd/system/other.service": false, "/etc/web.service": false, "/etc/init.d/web.sh": false,
	} {
		if got := isUnitFile(file, "web"); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
	if !isUnitFile("/etc/systemd/system/web.socket", "web.socket") {
		t.Error("a unit with its suffix is not found")
	}
}

// A lack of which nothing is known names no step: the nearest one would be blamed for nothing.
func TestALackOfAnythingNamesNoStep(t *testing.T) {
	got := unknownUntil(host.Lacks(errors.New("the server does not answer")), nil)
	if !strings.Contains(got, "the server does not answer") || strings.Contains(got, "runs before") {
		t.Error(got)
	}
}
