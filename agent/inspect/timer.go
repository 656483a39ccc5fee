package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
)

// NextRun queries systemd for the time of the next deploy by the timer. It returns nil if none is planned, or below a
// root that is not the running system.
func (h *Host) NextRun(ctx context.Context) *time.Time {
	if h.Layout.Relocated() {
		return nil
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "list-timers", "--all", "--output=json", records.TimerUnit)
	if err != nil {
		return nil
	}
	return nextElapse(out)
}

// TimerOff returns why the host's timer starts no run: masked, inactive or failed. It returns "" if the timer waits, if
// the host has none, and below a root that is not the running system.
func (h *Host) TimerOff(ctx context.Context) string {
	if h.Layout.Relocated() {
		return ""
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "show", "--property=LoadState,ActiveState", records.TimerUnit)
	if err != nil {
		return ""
	}
	return timerOff(out)
}

// timerOff parses the output of systemctl.
func timerOff(answer string) string {
	state := service.Properties(answer)
	switch load, active := state["LoadState"], state["ActiveState"]; {
	case load == "masked":
		return load
	case load == "loaded" && active != "active" && active != "activating":
		return active
	}
	return ""
}

// nextElapse parses the output of systemctl, whose times are in microseconds.
func nextElapse(answer string) *time.Time {
	var timers []struct {
		Next int64  `json:"next"`
		Unit string `json:"unit"`
	}
	if json.Unmarshal([]byte(answer), &timers) != nil {
		return nil
	}
	for _, t := range timers {
		if t.Unit == records.TimerUnit && t.Next > 0 {
			at := time.UnixMicro(t.Next)
			return &at
		}
	}
	return nil
}
