package main

import (
	"testing"
	"time"
)

// TestIDsOfRolloutsHave24Characters compares the length with the 24 question marks of the policies in docs/buckets.md
// and in packaging/trees/orchestration.
func TestIDsOfRolloutsHave24Characters(t *testing.T) {
	for _, at := range []time.Time{time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		time.Date(2031, 11, 12, 13, 14, 15, 999, time.UTC)} {
		if id, err := newRolloutID(at); err != nil || len(id) != 24 {
			t.Errorf("an ID is %q, %v", id, err)
		}
	}
}
