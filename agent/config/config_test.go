package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
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
		t.Errorf("with two repeated keys: %v", err)
	}
}

func TestFlagsOverrideEnvironmentAndFile(t *testing.T) {
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
		t.Errorf("the configuration is %+v", c)
	}
	if !c.Failhard || c.BaseChannel != "production" || c.Engine != "native" {
		t.Errorf("the defaults are %+v", c)
	}
}

func TestAllMistakesAreReportedWithPositions(t *testing.T) {
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

// TestEveryUnknownSettingIsSuggested misspells a section and a setting in one, and gives a setting without its section.
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

func TestExplicitConfigFileMustExist(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := config.Load(config.Sources{File: absent}); err != nil {
		t.Errorf("without the default file: %v", err)
	}
	if _, err := config.Load(config.Sources{File: absent, Required: true}); err == nil {
		t.Error("a file that was named explicitly does not exist, and Load returns no error")
	}
	if _, err := config.Load(config.Sources{File: file(t, "a: [")}); err == nil ||
		!strings.Contains(err.Error(), "not YAML") {
		t.Errorf("broken YAML: %v", err)
	}
	if _, err := config.Load(config.Sources{File: file(t, "- a\n")}); err == nil {
		t.Error("a list is accepted as a configuration")
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
		t.Errorf("the error is %v", err)
	}
}

// TestHintOfALostDirectoryMakesIt checks that the hint creates the directory to which a copy of the configuration is
// restored.
func TestHintOfALostDirectoryMakesIt(t *testing.T) {
	d := config.Damaged{Path: "/etc/corpus/agent.yaml", Copy: "/srv/projects/.agent.yaml"}
	if want := "mkdir -p /etc/corpus && cp -T"; !strings.Contains(d.Hint(), want) {
		t.Errorf("hint %q, want %q in it", d.Hint(), want)
	}
}

// TestEverySettingOfTimeAndNumberHasARange checks that values outside of the range are refused with their position,
// from each source.
func TestEverySettingOfTimeAndNumberHasARange(t *testing.T) {
	for _, k := range config.Keys() {
		if k.Kind != config.Duration && k.Kind != config.Number {
			continue
		}
		if k.Span() == (recipe.Span{}) {
			t.Errorf("%s has no range", k.Name)
		}
		_, err := config.Load(config.Sources{Getenv: func(name string) string {
			return map[string]string{k.Env(): "-1s"}[name]
		}})
		if err == nil || !strings.Contains(err.Error(), k.Env()) || !strings.Contains(err.Error(), k.Range()) {
			t.Errorf("%s of -1s: %v, want an error with %q", k.Name, err, k.Range())
		}
	}
	path := file(t, `converge: {timeout: 1ms, stop_timeout: -1s}
hooks: {timeout: 0s}
fetch: {timeout: -1m, retry: -1s, rate: -1}
health: {deadline: -1m, timeout: -1s, interval: 0s, retries: -1}
notify: {webhook: {timeout: 0s, tries: 0}}
`)
	_, err := config.Load(config.Sources{File: path})
	for _, want := range []string{
		`:1:21: converge.timeout is "1ms", and a duration from 1s to 720h was expected`, `:1:40: converge.stop_timeout`,
		`:2:18: hooks.timeout`, `:3:18: fetch.timeout`, `:3:30: fetch.retry is "-1s", and a duration 0s, or from 1s to 24h`,
		`:3:41: fetch.rate is "-1", and a number of 0 or more was expected`, `:4:20: health.deadline`,
		`:4:34: health.timeout`,
		`:4:49: health.interval`, `:4:62: health.retries`, `:5:29: notify.webhook.timeout`, `:5:40: notify.webhook.tries`,
	} {
		if err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
}

func TestGraceMustBeShorterThanDeadline(t *testing.T) {
	path := file(t, "health:\n  grace: 20s\n  deadline: 6s\n")
	_, err := config.Load(config.Sources{File: path})
	if err == nil || !strings.Contains(err.Error(), path+":2:10: health.grace is 20s") {
		t.Errorf("%v", err)
	}
}

// TestSourcesOfPillarDataAreChecked uses the forms of a minion's configuration.
func TestSourcesOfPillarDataAreChecked(t *testing.T) {
	load := func(text string) (config.Config, error) { return config.Load(config.Sources{File: file(t, text)}) }
	c, err := load("ext_pillar:\n  - cmd_yaml: cat /etc/p.yaml\n  - file_tree: {root_dir: /srv/ft}\n" +
		"ext_pillar_first: true\n")
	const want = "[{'cmd_yaml': 'cat /etc/p.yaml'}, {'file_tree': {'root_dir': '/srv/ft'}}]"
	if got := value.Repr(c.ExtPillar); err != nil || got != want || !c.ExtPillarFirst {
		t.Errorf("%v, first %v: %s, want %s", err, c.ExtPillarFirst, got, want)
	}
	for text, want := range map[string]string{
		"ext_pillar: {cmd_yaml: x}\n": "agent.yaml:1:13: ext_pillar: a list of sources was expected",
		"ext_pillar:\n  - cmd_yaml\n": "agent.yaml:2:5: ext_pillar: the name of one source was " +
			"expected",
		"ext_pillar:\n  - {a: 1, b: 2}\n": "agent.yaml:2:5: ext_pillar: the name of one source was " +
			"expected",
		"engine: salt-call\next_pillar:\n  - cmd_yaml: x\n": "ext_pillar is for the native engine",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
