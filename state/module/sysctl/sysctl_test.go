package sysctl_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/sysctl"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "sysctl",
		Functions: func(*statetest.Host) module.Table { return sysctl.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			statetest.UseTools(t, h, map[string]statetest.Tool{"sysctl": func(args []string, _ string) (string, error) {
				name, v, _ := strings.Cut(args[1], "=")
				if v == "refused" {
					return "", statetest.Code{Code: 255, Text: "sysctl: setting key \"" + name + "\": Invalid argument"}
				}
				h.Put("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), v+"\n")
				return name + " = " + v + "\n", nil
			}})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/sysctl.yaml"),
	})
}
