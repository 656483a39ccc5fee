package selinux_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/selinux"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// prepare adds simulated tools, with the booleans in /switches as semanage lists them.
func prepare(t *testing.T, h *statetest.Host) {
	statetest.UseTools(t, h, map[string]statetest.Tool{
		"setenforce": func(args []string, _ string) (string, error) {
			h.Put("/sys/fs/selinux/enforce", args[0])
			return "", nil
		},
		"semanage": func([]string, string) (string, error) {
			return "SELinux boolean                State  Default Description\n\n" + h.Text("/switches"), nil
		},
		"setsebool": func(args []string, _ string) (string, error) {
			v, fallback := args[len(args)-1], "off"
			if args[0] == "-P" {
				fallback = v
			}
			h.Put("/switches", strings.Join([]string{args[len(args)-2], " (", v, " , ", fallback, ")  words\n"}, ""))
			return "", nil
		},
	})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "selinux",
		Functions: func(*statetest.Host) module.Table { return selinux.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/selinux.yaml"),
	})
}
