package program

import (
	"testing"
	"time"
)

func TestProgramsHaveALimit(t *testing.T) {
	for _, c := range []struct {
		given time.Duration
		query bool
		want  time.Duration
	}{{0, true, 5 * time.Minute}, {0, false, time.Hour}, {time.Minute, true, time.Minute},
		{2 * time.Hour, false, 2 * time.Hour}} {
		if got := (Program{Limit: c.given}).limit(c.query); got != c.want {
			t.Errorf("limit %s, query %t: %s, want %s", c.given, c.query, got, c.want)
		}
	}
}
