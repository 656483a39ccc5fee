package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// compiles measures the compilation of the SLS files of the top file. Each time has a new session, and must give the
// given number of steps.
func compiles(b *testing.B, files map[string]string, steps int) {
	b.Helper()
	set, _ := settings(b, files)
	b.ReportAllocs()
	for b.Loop() {
		s := families.New(set)
		matches, err := s.Top(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		p, err := s.Program(b.Context(), matches)
		if err != nil {
			b.Fatal(err)
		}
		if len(p.Steps) != steps {
			b.Fatalf("%d steps, want %d", len(p.Steps), steps)
		}
	}
}

func BenchmarkCompile159(b *testing.B) { compiles(b, benchtree.Salt(40), 159) }
func BenchmarkCompile879(b *testing.B) { compiles(b, benchtree.Salt(400), 879) }

// BenchmarkRequisites compiles states that each have a requisite, for each kind of requisite. The time per state must
// be the same for more states.
func BenchmarkRequisites(b *testing.B) {
	for _, kind := range []string{
		"require: [{test: s%[2]d}]", "require: [s%[2]d]", "require_in: [{test: s%[3]d}]", "watch: [{test: s%[2]d}]",
		"watch_in: [{test: s%[3]d}]",
		"listen: [{test: s%[2]d}]", "listen_in: [{test: s%[3]d}]", "onchanges: [{test: s%[2]d}]",
		"onfail_in: [{test: s%[3]d}]", "prereq: [{test: s%[3]d}]",
		"use: [{test: s%[2]d}]", "names: [a%[1]d, b%[1]d]", "require: [{test: all}]", "require_in: [{test: all}]",
		"require: [{sls: first}]",
		"require_in: [{sls: first}]", "require: [{test: nosuch%[1]d}]", "require: [{test: 'fir*'}]",
	} {
		for _, n := range []int{2500, 10000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(fillIn(kind, 1, 3), " ", ""), n), func(b *testing.B) {
				steps := n + 2
				if strings.HasPrefix(kind, "names") {
					steps += n
				}
				compiles(b, related(n, kind), steps)
			})
		}
	}
}

// related returns a tree of n states, each with a requisite on the state before or after it, and two other states.
func related(n int, kind string) map[string]string {
	var b strings.Builder
	b.WriteString("include: [first]\nall:\n  test.nop: []\n")
	for i := range n {
		fmt.Fprintf(&b, "s%d:\n  test.nop:\n    - name: n%d\n    - x: {{ grains.os }}\n    - %s\n", i, i, fillIn(kind, i, n))
	}
	// The first and the last state would require themselves.
	text := strings.NewReplacer("test: s0}]\n", "test: all}]\n", fmt.Sprintf("test: s%d}]\n", n-1), "test: all}]\n",
		"require: [s0]", "require: [all]").Replace(b.String())
	return map[string]string{"states/top.sls": "base:\n  '*':\n    - many\n", "states/many.sls": text,
		"states/first.sls": "first:\n  test.nop: []\n"}
}

// fillIn replaces %[1]d in a requisite by the number of its state, %[2]d by that of the state before, and %[3]d by that
// of the state after.
func fillIn(kind string, i, n int) string {
	return strings.NewReplacer("%[1]d", fmt.Sprint(i), "%[2]d", fmt.Sprint(max(i-1, 0)), "%[3]d",
		fmt.Sprint(min(i+1, n-1))).Replace(kind)
}
