package virt_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/virt"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State: "virt",
		// The pillar of a case is in /pillar, with a file for each key.
		Functions: func(h *statetest.Host) module.Table {
			return virt.Functions(func(path, delimiter string) (any, bool) {
				pillar := value.NewMap()
				names, _ := h.Files.ReadDir("/pillar")
				for _, name := range names {
					pillar.Set(name, h.Text("/pillar/"+name))
				}
				return value.Lookup(pillar, path, delimiter)
			})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/virt.yaml"),
	})
}
