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

// A webhook's URL in agent.yaml is often a secret: no package installs the file readable by every user.
func TestConfigurationIsInstalledPrivate(t *testing.T) {
	packages, err := os.ReadFile("../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	installed := regexp.MustCompile(`(?m)^.*dst: /etc/corpus/agent\.yaml.*$`).FindAllString(string(packages), -1)
	if len(installed) < 3 {
		t.Fatalf("goreleaser.yaml installs agent.yaml in %d packages", len(installed))
	}
	for _, line := range installed {
		if !strings.Contains(line, "mode: 0o640}") {
			t.Errorf("goreleaser.yaml: %s", strings.TrimSpace(line))
		}
	}
	script, err := os.ReadFile("scripts/postinstall.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "install -m 640 $default /etc/corpus/agent.yaml") || !strings.Contains(string(script), "chmod 640 /etc/corpus/agent.yaml") {
		t.Error("postinstall.sh does not give agent.yaml its mode")
	}
}
