package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// FuzzCompiler compiles SLS texts into steps, or into problems with positions. The text may include the rest of the
// tree. The host is a directory, and runs no command.
func FuzzCompiler(f *testing.F) {
	cases, err := filepath.Glob("../../testdata/salt/*/states/*.sls")
	if err != nil || len(cases) == 0 {
		f.Fatalf("no recorded SLS files: %v", err)
	}
	for _, name := range cases {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("include: [t]\nextend: {a: {test: [{require: [{sls: t}]}]}}\n" +
		"a: {test.nop: [{names: [x, {y: [{order: last}]}]}, {require_in: [{test: a}]}]}\nexclude: [{id: a}, {sls: other}]\n")
	f.Add("a: {test.nop: [{prereq: [{test: b}]}, {use: [{test: b}]}, {use_in: [{test: b}]}]}\n" +
		"b: {test.nop: [{prereq_in: [{test: a}]}, {listen_in: [a]}, {onchanges_any: [{id: a}]}]}\n")
	set, dir := settings(f, map[string]string{
		"states/other.sls": "o:\n  test.nop:\n    - require_in:\n      - test: a\n", "states/t.sls": "",
		"pillar/top.sls": "base:\n  '*':\n    - p\n", "pillar/p.sls": "a: {b: [1, 2]}\n",
	})
	set.Host, err = machine.New(host.Options{Root: dir,
		Commands: statetest.Commands(func(host.Command) (host.Output, error) {
			return host.Output{}, errors.New("no command is run here")
		})})
	if err != nil {
		f.Fatal(err)
	}
	set.States, set.Pillar = []roots.Env{{Name: "base", Dirs: []string{"/states"}}},
		[]roots.Env{{Name: "base", Dirs: []string{"/pillar"}}}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "http") || strings.Contains(text, "dnsutil") || strings.Contains(text, "dig") {
			t.Skip("the text queries the network")
		}
		if err := os.WriteFile(filepath.Join(dir, "states/t.sls"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s := families.New(set)
		p, err := s.Program(ctx, s.Named("t"))
		if err == nil {
			for _, step := range p.Steps {
				_ = step.Tag()
				_ = step.At("name")
			}
			for _, problem := range p.Problems {
				_ = problem.Text()
			}
			return
		}
		var list diag.List
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("%q: the error has no position: %T %v", text, err, err)
		}
		for _, problem := range list {
			if problem.Message == "" || !strings.HasSuffix(problem.Pos.File, ".sls") {
				t.Fatalf("%q: %v at %s", text, problem, problem.Pos)
			}
		}
	})
}
