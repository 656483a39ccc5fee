package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// templated returns a request for this machine with a template in dir as its only state.
func templated(t *testing.T, dir, text, check string) state.Request {
	t.Helper()
	for name, data := range map[string]string{"states/top.sls": "base: {}\n", "app.conf.j2": text} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return state.Request{
		Host: h, Grains: value.NewMap("id", "h1"), StateRoots: []string{filepath.Join(dir, "states")},
		Templates: []state.Template{{Source: filepath.Join(dir, "app.conf.j2"), Target: filepath.Join(dir, "etc/app.conf"),
			Check: check}},
	}
}

func TestTemplateRefusedByCheckIsNotInstalled(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "etc/app.conf")
	for _, c := range []struct{ text, want, refused string }{
		{"port=80 on {{ grains.id }}\n", "port=80 on h1\n", ""},
		{"prt=80\n", "port=80 on h1\n", "check_cmd refuses the new content of " + target},
		{"port=81\n", "port=81\n", ""},
	} {
		program, err := state.Native{}.Compile(t.Context(), templated(t, dir, c.text, "grep -q port"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = program.Apply(t.Context(), &seen{})
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q gives %v, want %q", c.text, err, c.refused)
		}
		if now, err := os.ReadFile(target); err != nil || string(now) != c.want {
			t.Errorf("after %q the file is %q, %v", c.text, now, err)
		}
	}
}

func TestTemplatesAreRenderedAfterAnotherEngine(t *testing.T) {
	dir := t.TempDir()
	r := templated(t, dir, "{{ grains.id }}\n", "")
	engine := state.WithTemplates(state.Command{Argv: []string{"sh", "-c", "echo done"}})
	r.WorkDir = dir
	program, err := engine.Compile(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := program.Apply(t.Context(), &seen{})
	if err != nil || len(outcome.Results) == 0 || !strings.Contains(outcome.Output, "done") {
		t.Errorf("the outcome is %+v, %v", outcome, err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "etc/app.conf")); err != nil || string(now) != "h1\n" {
		t.Errorf("the file is %q, %v", now, err)
	}
}

func TestTwoTemplatesForOneFileAreAMistake(t *testing.T) {
	r := templated(t, t.TempDir(), "x\n", "")
	r.Templates = append(r.Templates, r.Templates[0])
	if _, err := (state.Native{}).Compile(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "is the target of two templates") {
		t.Errorf("compiling gives %v", err)
	}
}
