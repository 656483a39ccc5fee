package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeysThatAFileHasTwice(t *testing.T) {
	path := file(t, "service: a\nhealth:\n  grace: 1s\n  grace: 2s\nservice: b\n")
	_, err := config.Load(config.Sources{File: path})
	if err == nil || !strings.Contains(err.Error(), path+":4:3: health.grace is given twice") ||
		!strings.Contains(err.Error(), path+":5:1: service is given twice") {
		t.Errorf("two keys that are there twice: %v", err)
	}
}

func TestFlagsWinOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	path := file(t, "store: file:///one\nkeep:\n  releases: 7\nhooks:\n  timeout: 90s\nengine_command: [a, b]\n")
	c, err := config.Load(config.Sources{
		File: path,
		Getenv: func(name string) string {
			return map[string]string{"CORPUS_STORE": "file:///two", "CORPUS_KEEP_FAILED": "9"}[name]
		},
		Flags: map[string]string{"store": "file:///three"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Store != "file:///three" || c.KeepReleases != 7 || c.KeepFailed != 9 || c.HookTimeout != 90*time.Second ||
		len(c.EngineCommand) != 2 {
		t.Errorf("configuration is %+v", c)
	}
	if !c.Failhard || c.BaseChannel != "production" || c.Engine != "native" {
		t.Errorf("defaults are %+v", c)
	}
}

func TestAllMistakesAreToldAtOnceWithTheirPlaces(t *testing.T) {
	path := file(t,
		"stor: file:///x\nkeep:\n  relaeses: 3\n  failed: many\nhooks: 5\nengine: chef\nconverge:\n  failhard: maybe\n")
	_, err := config.Load(config.Sources{File: path, Flags: map[string]string{"hooks.timeout": "soon"}})
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("error is %v, want a list", err)
	}
	all := err.Error()
	for _, want := range []string{
		path + `:1:1: unknown setting "stor"`, path + `:3:3: unknown setting "keep.relaeses"`,
		path + `:4:11: keep.failed is "many"`,
		path + `:5:8: hooks: a mapping`, path + `:6:9: engine is "chef"`, path + `:8:13: converge.failhard is "maybe"`,
		`flag --hooks.timeout: hooks.timeout is "soon"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if list[0].Hint == "" || !strings.Contains(hints(list), `did you mean "store"?`) {
		t.Errorf("hints are %q", hints(list))
	}
}

// TestEveryUnknownSettingIsSuggested misspells a section, a setting of one, and gives a setting of a section without
// it.
func TestEveryUnknownSettingIsSuggested(t *testing.T) {
	for text, want := range map[string]string{
		"convrege: {failhard: true}\n":   `did you mean "converge"?`,
		"converge: {failhrd: true}\n":    `did you mean "converge.failhard"?`,
		"failhard: true\n":               "did you mean converge.failhard?",
		"hooks: {state_output: mixed}\n": "did you mean converge.state_output?",
		"wholly_unknown_words: 1\n":      "docs/configuration.md",
	} {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Sources{File: file})
		var list diag.List
		if !errors.As(err, &list) || !strings.Contains(hints(list), want) {
			t.Errorf("%q: %v (hints %q), want %q", text, err, hints(list), want)
		}
	}
}

func hints(list diag.List) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Hint + "\n")
	}
	return b.String()
}

func TestFileThatIsAskedForMustBeThere(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := config.Load(config.Sources{File: absent}); err != nil {
		t.Errorf("the default file is absent: %v", err)
	}
	if _, err := config.Load(config.Sources{File: absent, Required: true}); err == nil {
		t.Error("a file that was asked for is absent, and nobody says so")
	}
	if _, err := config.Load(config.Sources{File: file(t, "a: [")}); err == nil ||
		!strings.Contains(err.Error(), "not YAML") {
		t.Errorf("broken YAML: %v", err)
	}
	if _, err := config.Load(config.Sources{File: file(t, "- a\n")}); err == nil {
		t.Error("a list is no configuration")
	}
}

func TestListsAndProbesAreChecked(t *testing.T) {
	c, err := config.Load(config.Sources{File: file(t,
		"health:\n  grace: 1s\n  probes:\n    - tcp: 127.0.0.1:80\nnotify:\n  on: [failure, no-change]\n")})
	if err != nil || len(c.Health.Probes) != 1 || c.Health.Grace != time.Second || c.Health.Deadline != 2*time.Minute ||
		len(c.Notify.On) != 2 {
		t.Errorf("configuration is %+v, %v", c, err)
	}
	path := file(t, "health:\n  probes:\n    - tpc: 127.0.0.1:80\nnotify:\n  on: [failures]\n")
	_, err = config.Load(config.Sources{File: path})
	if err == nil || !strings.Contains(err.Error(), path+`:3:7: unknown key "tpc"`) ||
		!strings.Contains(err.Error(), path+`:5:8: notify.on is "failures"`) {
		t.Errorf("mistakes are told as %v", err)
	}
}

// TestHintOfALostDirectoryMakesIt has no directory in which a copy of the configuration could be put.
func TestHintOfALostDirectoryMakesIt(t *testing.T) {
	d := config.Damaged{Path: "/etc/corpus/agent.yaml", Copy: "/srv/projects/.agent.yaml"}
	if want := "mkdir -p /etc/corpus && cp -T"; !strings.Contains(d.Hint(), want) {
		t.Errorf("hint %q, want %q in it", d.Hint(), want)
	}
}
