package packaging_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A run that another one refused for longer than the timer's interval (9) is a failure of the unit; a short
// overlap (6) and an interrupted host (130) are none.
func TestUnitsFailWhereTheLockIsNeverFree(t *testing.T) {
	for _, file := range []string{"systemd/corpus-agent.service", "bootstrap.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^SuccessExitStatus=(.*)$`).FindStringSubmatch(string(data))
		if found == nil {
			t.Fatalf("%s names no exit codes", file)
		}
		if codes := strings.Fields(found[1]); !slices.Equal(codes, []string{"6", "130"}) {
			t.Errorf("%s: success are %q", file, codes)
		}
	}
}
