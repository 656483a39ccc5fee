package inspect

import (
	"testing"
)

func TestTimerOff(t *testing.T) {
	for answer, want := range map[string]string{
		"LoadState=loaded\nActiveState=active\n":      "",
		"LoadState=loaded\nActiveState=inactive\n":    "inactive",
		"LoadState=loaded\nActiveState=failed\n":      "failed",
		"LoadState=masked\nActiveState=inactive\n":    "masked",
		"LoadState=not-found\nActiveState=inactive\n": "",
		"": "",
	} {
		if got := timerOff(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
