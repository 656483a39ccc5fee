package iptables_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/iptables"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// filter simulates a packet filter with one table, kept in a file of lines as `iptables -S` prints them.
type filter struct {
	h    *statetest.Host
	file string
}

func (f filter) lines() []string {
	return slices.DeleteFunc(strings.Split(f.h.Text(f.file), "\n"), func(l string) bool { return l == "" })
}

func (f filter) put(lines []string) { f.h.Put(f.file, strings.Join(lines, "\n")+"\n") }

// run simulates iptables for the commands that the states use.
func (f filter) run(args []string, _ string) (string, error) {
	verb, words := args[3], args[4:]
	chain := append(words, "")[0]
	lines := f.lines()
	known := slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "-P "+chain+" ") || l == "-N "+chain
	})
	if busy := f.h.Text("/busy"); busy != "" {
		return "", statetest.Code{Code: 4, Text: strings.TrimSpace(busy)}
	}
	no := statetest.Code{Code: 1, Text: "iptables: No chain/target/match by that name."}
	if chain != "" && !known && verb != "-N" {
		return "", no
	}
	if slices.Contains(words, "--nonsense") {
		return "", statetest.Code{Code: 2, Text: "iptables v1.8.9 (nf_tables): unknown option \"--nonsense\""}
	}
	of := func(l string) bool {
		return strings.HasPrefix(l, "-A "+chain) && (chain == "" || l[len("-A "+chain)] == ' ')
	}
	rule := "-A " + strings.Join(words, " ")
	switch verb {
	case "-S":
		var out strings.Builder
		for _, l := range lines {
			if chain == "" || of(l) || strings.HasPrefix(l, "-P "+chain+" ") || l == "-N "+chain {
				out.WriteString(l + "\n")
			}
		}
		return out.String(), nil
	case "-C":
		if slices.Contains(lines, rule) {
			return "", nil
		}
		return "", no
	case "-A":
		f.put(append(lines, rule))
	case "-I":
		at, _ := strconv.Atoi(words[1])
		for i, l := range append(lines, "-A "+chain+" end") {
			if of(l) {
				if at--; at == 0 {
					f.put(slices.Insert(lines, i, "-A "+chain+" "+strings.Join(words[2:], " ")))
					return "", nil
				}
			}
		}
		return "", statetest.Code{Code: 1, Text: "iptables: Index of insertion too big."}
	case "-D":
		f.put(slices.DeleteFunc(lines, func(l string) bool {
			return l == rule || of(l) && len(words) == 2 && words[1] == "1"
		}))
	case "-N":
		f.put(append(lines, "-N "+chain))
	case "-X":
		f.put(slices.DeleteFunc(lines, func(l string) bool { return l == "-N "+chain }))
	case "-F":
		f.put(slices.DeleteFunc(lines, of))
	case "-P":
		for i, l := range lines {
			if strings.HasPrefix(l, "-P "+chain+" ") {
				lines[i] = "-P " + chain + " " + words[1]
			}
		}
		f.put(lines)
	}
	return "", nil
}

// save simulates iptables-save, with different counters in each call.
func (f filter) save() statetest.Tool {
	n := 0
	return func([]string, string) (string, error) {
		n++
		return fmt.Sprintf("# Generated at %d\n*filter\n:INPUT [%d:1]\n%sCOMMIT\n", n, n, f.h.Text(f.file)), nil
	}
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "iptables",
		Functions: func(*statetest.Host) module.Table { return iptables.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			four, six := filter{h, "/four"}, filter{h, "/six"}
			statetest.UseTools(t, h, map[string]statetest.Tool{
				"iptables": four.run, "ip6tables": six.run, "iptables-save": four.save(), "ip6tables-save": six.save(),
			})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/iptables.yaml"),
	})
}
