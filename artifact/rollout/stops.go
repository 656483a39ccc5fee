package rollout

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Stop records that an earlier rollout of a channel halted, or that a person aborted it.
type Stop struct {
	Release string    `json:"release"` // digest of the release that it brought
	What    string    `json:"what"`    // halt or abort
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`  // host that recorded the halt, or person who aborted; empty if not known
	Why     string    `json:"why,omitempty"` // grounds of the halt; empty if not known
}

// String returns a stop in one line.
func (s Stop) String() string {
	text := s.What + " at " + s.At.UTC().Format(time.RFC3339)
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// Limits of the stops that a start keeps, and of the length of their texts in bytes.
const (
	maxStops    = 8
	maxStopText = 400
)

// StopsOf returns the stops for Start.Stops of the next rollout of the channel, the newest last: those that s has,
// the given ones of the rollout s itself, and its abort. s may be nil.
func (s *Start) StopsOf(halts []Stop) (stops []Stop) {
	if s == nil {
		return nil
	}
	stops = append(slices.Clone(s.Stops), halts...)
	if n := len(s.Moves); s.Aborted && n > 0 { // no move follows an abort
		stops = append(stops, Stop{Release: s.Release, What: "abort", At: s.Moves[n-1].At, By: s.Moves[n-1].Who})
	}
	for i := range stops {
		stops[i].By, stops[i].Why = cut(stops[i].By), cut(stops[i].Why)
	}
	return stops[max(0, len(stops)-maxStops):]
}

// cut returns a text of at most maxStopText bytes.
func cut(text string) string {
	if len(text) <= maxStopText {
		return text
	}
	const more = "..."
	last := 0
	for i := range text { // the first byte of each character
		if i > maxStopText-len(more) {
			break
		}
		last = i
	}
	return text[:last] + more
}

// Stopped returns the earlier stops of rollouts that brought the same release.
func (s Start) Stopped() (stops []Stop) {
	for _, stop := range s.Stops {
		if stop.Release == s.Release {
			stops = append(stops, stop)
		}
	}
	return stops
}

// checkStops returns every mistake in the stops of a start.
func (s Start) checkStops() error {
	var errs []error
	for _, stop := range s.Stops {
		errs = append(errs, checkDigest("stopped release", stop.Release))
		if len(stop.By) > maxStopText || len(stop.Why) > maxStopText {
			errs = append(errs, fmt.Errorf("the text of a stop of an earlier rollout has more than %d bytes", maxStopText))
		}
	}
	if len(s.Stops) > maxStops {
		errs = append(errs, fmt.Errorf("the rollout has more than %d earlier stops", maxStops))
	}
	return errors.Join(errs...)
}
