package packaging_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUnitFailsIfLockIsNeverFree checks that the unit fails if another run held the lock for longer than the timer's
// interval (9), and not after a short overlap (6) or an interrupt (130).
func TestUnitFailsIfLockIsNeverFree(t *testing.T) {
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
			t.Errorf("%s: the successful exit codes are %q", file, codes)
		}
	}
}

// TestConfigurationIsInstalledPrivate checks that no package installs agent.yaml readable by all users: a webhook's URL
// in it is often a secret.
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
	if !strings.Contains(string(script), "install -m 640 $default /etc/corpus/agent.yaml") ||
		!strings.Contains(string(script), "chmod 640 /etc/corpus/agent.yaml") {
		t.Error("postinstall.sh does not give agent.yaml its mode")
	}
}

// TestOnlyHostsThatWereNeverDeployedSkipRuns checks that the timer skips runs on a host that was never deployed from a
// store, and on no other host, even after a loss of files.
func TestOnlyHostsThatWereNeverDeployedSkipRuns(t *testing.T) {
	const root, given = "/var/lib/corpus/trust/root.json", "/var/lib/corpus/trust/given"
	const ledger, other = "/var/lib/corpus/ledger.json", "/srv/projects/.ledger.json"
	deployed := `{"version": 1, "host": {"store": "file:///srv/store"}, "good": {}}`
	pushed := `{"version": 1, "host": {}, "good": {}}`
	for name, c := range map[string]struct {
		files map[string]string // a file that begins with "->" is a link
		env   string
		runs  bool
	}{
		"nothing":                    {},
		"settings that name no root": {files: map[string]string{"/etc/corpus/environment": "A=b"}},
		"a root given by settings": {files: map[string]string{"/etc/corpus/environment": ""},
			env: "CORPUS_TRUST_ROOT=/root/root.json", runs: true},
		"a root":                {files: map[string]string{root: "{}"}, runs: true},
		"a root that was given": {files: map[string]string{given: "{}"}, runs: true},
		"pushed, and never bootstrapped": {files: map[string]string{ledger: pushed, other: pushed,
			"/srv/service": "->projects/web"}},
		"the root is lost": {files: map[string]string{ledger: deployed, other: deployed,
			"/srv/service": "->projects/web"}, runs: true},
		"the state directory is lost": {files: map[string]string{other: deployed}, runs: true},
		"the projects are lost":       {files: map[string]string{ledger: deployed}, runs: true},
		"all but a link is lost":      {files: map[string]string{"/srv/service": "->projects/web"}, runs: true},
		"only base":                   {files: map[string]string{"/srv/base": "->projects/base"}, runs: true},
	} {
		dir := t.TempDir()
		for path, content := range c.files {
			path = dir + path
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			to, link := strings.CutPrefix(content, "->")
			err := os.WriteFile(path, []byte(content), 0o600)
			if link {
				err = errors.Join(os.Remove(path), os.Symlink(to, path))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := unitRuns(t, dir, c.env); got != c.runs {
			t.Errorf("%s: a run of the timer is started: %v, want %v", name, got, c.runs)
		}
	}
}

// unitRuns evaluates the conditions of the service for files below a directory.
func unitRuns(t *testing.T, dir, env string) bool {
	t.Helper()
	data, err := os.ReadFile("systemd/corpus-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	met := false
	for _, found := range regexp.MustCompile(`(?m)^Condition(\w+)=\|(.*)$`).FindAllStringSubmatch(string(data), -1) {
		info, err := os.Lstat(dir + found[2])
		met = met || err == nil && (found[1] == "PathExists" || info.Mode()&os.ModeSymlink != 0)
	}
	found := regexp.MustCompile(`(?ms)^ExecCondition=/bin/sh -c '(.*?)'$`).FindStringSubmatch(string(data))
	if found == nil {
		t.Fatal("the unit has no ExecCondition of the known form")
	}
	script := strings.NewReplacer("\\\n", " ", "$$", "$", " /var/", " "+dir+"/var/", " /srv/", " "+dir+"/srv/",
		"=/var/", "="+dir+"/var/", "=/srv/", "="+dir+"/srv/").Replace(found[1])
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=/usr/bin:/bin", env}
	return met && cmd.Run() == nil
}

// TestRefreshFailsWithoutItsSettings checks that a unit that a person has enabled fails if its files are missing; a
// condition would skip it silently. corpus reports the loss, and systemd does not retry it: a later start would wait
// for the next attempt.
func TestRefreshFailsWithoutItsSettings(t *testing.T) {
	data, err := os.ReadFile("systemd/corpus-refresh@.service")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "\nCondition") ||
		!strings.Contains(text, "\nEnvironmentFile=-/etc/corpus/refresh/%i.env\n") ||
		!strings.Contains(text, "\nRestartPreventExitStatus=1 2 3 4\n") {
		t.Error("corpus-refresh@.service is skipped or restarted although its settings are missing")
	}
}
