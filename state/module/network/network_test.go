package network_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/network"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

type sources struct{}

// Diff returns both texts.
func (sources) Diff(before, after string) string { return "-" + before + "+" + after }

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "network",
		Functions: func(*statetest.Host) module.Table { return network.Functions(sources{}) },
		Cases:     statetest.Load(t, "../../../testdata/modules/system/network.yaml"),
	})
}
