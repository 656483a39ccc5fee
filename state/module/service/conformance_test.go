package service_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/service"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestServices(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "service",
		Functions: func(*statetest.Host) module.Table { return service.Functions() },
		Prepare:   func(_ *testing.T, h *statetest.Host) { statetest.UseUnits(h) },
		Cases:     statetest.Load(t, "testdata/service.yaml"),
	})
}
