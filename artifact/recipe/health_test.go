package recipe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

func TestHealthIsAMappingOrAList(t *testing.T) {
	r, err := recipe.Parse([]byte(`
health:
  grace: 2s
  deadline: 1m
  retries: 5
  probes:
    - http: http://127.0.0.1:8080/ready
      status: 200-204
      contains: ok
    - unit: myapp.service
    - script: bin/check
      args: [--fast]
`), "corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := r.Health
	if h.Grace != 2*time.Second || h.Deadline != time.Minute || h.Retries != 5 || len(h.Probes) != 3 {
		t.Errorf("health is %+v", h)
	}
	if p := h.Probes[0]; p.Kind != recipe.ProbeHTTP || p.Status != [2]int{200, 204} || p.Contains != "ok" {
		t.Errorf("the first probe is %+v", p)
	}
	if p := h.Probes[2]; p.String() != "script bin/check" || len(p.Args) != 1 {
		t.Errorf("the last probe is %+v", p)
	}
	r, err = recipe.Parse([]byte("health:\n- tcp: 127.0.0.1:80\n"), "corpus.yaml")
	if err != nil || len(r.Health.Probes) != 1 || r.Health.Probes[0].Target != "127.0.0.1:80" {
		t.Errorf("a list of probes is %+v, %v", r.Health, err)
	}
}

func TestMistakesInHealthAreReportedTogether(t *testing.T) {
	_, err := recipe.Parse([]byte(`health:
  grase: 2s
  deadline: soon
  probes:
    - http: 127.0.0.1/ready
    - tcp: here
    - unit: a
      tcp: 127.0.0.1:1
    - status: 200
    - script: ../../bin/sh
    - http: http://h/
      status: 99
    - just text
`), "corpus.yaml")
	if err == nil {
		t.Fatal("an invalid file is read without an error")
	}
	for _, want := range []string{
		`corpus.yaml:2:3: unknown key "grase"`, `corpus.yaml:3:13: deadline is "soon"`, `corpus.yaml:5:13: "127.0.0.1/ready"`,
		`corpus.yaml:6:12: "here"`,
		"corpus.yaml:8:7: one probe is both", "corpus.yaml:9:7: this probe asks nothing", `corpus.yaml:10:15: "../../bin/sh"`,
		`corpus.yaml:12:15: "99"`, "corpus.yaml:13:7: a probe was expected",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
}

func TestTimesOfHealthHaveRanges(t *testing.T) {
	text := "health:\n  grace: 25h\n  deadline: 1ms\n  interval: -1s\n  timeout: 1ns\n  retries: -1\n"
	_, err := recipe.Parse([]byte(text), "corpus.yaml")
	for _, want := range []string{
		`:2:10: grace is "25h", and a duration from 0s to 24h was expected`, `:3:13: deadline is "1ms"`,
		`:4:13: interval is "-1s"`,
		`:5:12: timeout is "1ns"`, `:6:12: retries is "-1", and a number from 0 to 10000 was expected`,
	} {
		if err == nil || !strings.Contains(err.Error(), "corpus.yaml"+want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
	for _, text := range []string{"{grace: 20s, deadline: 6s}", "{grace: 2m}"} {
		if _, err := recipe.Parse([]byte("health: "+text), "corpus.yaml"); err == nil ||
			!strings.Contains(err.Error(), "not shorter than the deadline") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := recipe.Parse([]byte("health: {grace: 3m, deadline: 5m, timeout: 0s}"), "corpus.yaml"); err != nil {
		t.Error(err)
	}
}

func TestProbesWithKeysOfAnotherKind(t *testing.T) {
	_, err := recipe.Parse([]byte(`health:
  - unit: a.service
    status: 200
  - http: http://127.0.0.1:99999/
    args: [x]
  - tcp: 127.0.0.1:0
    contains: x
`), "corpus.yaml")
	for _, want := range []string{":3:5: status has no effect", ":4:11: 99999 is not a port", ":5:5: args has no effect",
		":6:10: 0 is not a port",
		":7:5: contains has no effect"} {
		if err == nil || !strings.Contains(err.Error(), "corpus.yaml"+want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
}

func TestAKeyThatIsATemplate(t *testing.T) {
	_, err := recipe.Parse([]byte("name: x\n{{ x }}: y\n"), "corpus.yaml")
	if err == nil || strings.Contains(err.Error(), `unknown key ""`) {
		t.Errorf("%v", err)
	}
}
