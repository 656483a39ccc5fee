package timezone_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/timezone"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "timezone",
		Functions: func(*statetest.Host) module.Table { return timezone.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			if h.Text("/run/systemd/system/x") == "" {
				return
			}
			statetest.UseTools(t, h, map[string]statetest.Tool{"timedatectl": func([]string, string) (string, error) {
				h.Put("/etc/adjtime", "0.0 0 0.0\n0\nUTC\n")
				return "", nil
			}})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/timezone.yaml"),
	})
}
