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

func TestMistakesInHealthAreToldTogether(t *testing.T) {
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
		t.Fatal("all of it is wrong, and nobody says so")
	}
	for _, want := range []string{
		`corpus.yaml:2:3: unknown key "grase"`, `corpus.yaml:3:13: "soon"`, `corpus.yaml:5:13: "127.0.0.1/ready"`,
		`corpus.yaml:6:12: "here"`,
		"corpus.yaml:8:7: one probe is both", "corpus.yaml:9:7: this probe asks nothing", `corpus.yaml:10:15: "../../bin/sh"`,
		`corpus.yaml:12:15: "99"`, "corpus.yaml:13:7: a probe was expected",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
}
