package failure

import (
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// One cause is one symptom, independent of the state of the unit when it was read and of the reader.
func TestAProgramThatSystemdCannotStartIsOneSymptom(t *testing.T) {
	probe := func(text string) error {
		return &health.Unhealthy{Results: []health.Result{{Probe: "unit web.service", Error: text}}}
	}
	unit := func(text string) error {
		return &service.Failed{Results: []service.Result{{Unit: "web.service", Error: text}}, Err: errors.New(text)}
	}
	same := []error{
		probe("it is failed (failed): its program ended with status 200 (exit-code)"),
		probe("it is activating (auto-restart): its program ended with status 200 (exit-code)"),
		unit("restart of web.service failed: exit-code, status 200\n" +
			"web.service: Changing to the requested working directory failed: Permission denied"),
		unit("web.service was started, and is failed (failed) now: its program ended with status 200 (exit-code)"),
	}
	for i, cause := range same {
		for j, back := range same {
			if !SameAfterRollback(cause, back) {
				t.Errorf("%d and %d have different symptoms: %q, %q", i, j, symptoms(cause), symptoms(back))
			}
		}
	}
	other := []error{
		probe("it is failed (failed): its program ended with status 203 (exit-code)"),
		probe("it is failed (failed): its program ended with status 1 (exit-code)"),
		probe("it is failed (failed): its program ended with status 255 (exit-code)"),
		unit("restart of web.service failed: exit-code, status 1\nweb: cannot continue: status 200 of the API"),
		&health.Unhealthy{Results: []health.Result{{Probe: "unit worker.service",
			Error: "it is failed (failed): its program ended with status 200 (exit-code)"}}},
	}
	for i, back := range other {
		if SameAfterRollback(same[0], back) || SameAfterRollback(back, same[0]) {
			t.Errorf("%d has the same symptoms as status 200 of web.service: %q", i, symptoms(back))
		}
	}
}
