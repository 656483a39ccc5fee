package main

import (
	"testing"
	"time"
)

// TestAgeOfReports checks that --reports accepts days and durations, and refuses values that would remove all reports.
func TestAgeOfReports(t *testing.T) {
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour,
		"720h": 720 * time.Hour, "0d": 0, "0s": 0, "-5d": 0, "90": 0, "d": 0, "99999999d": 0, "": 0, "-1h": 0} {
		var age days
		if err := age.Set(text); (err == nil) != (want > 0) || time.Duration(age) != want {
			t.Errorf("%q is %s, %v; want %s", text, time.Duration(age), err, want)
		}
	}
}
