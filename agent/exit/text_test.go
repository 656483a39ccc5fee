package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

func TestCancelledContextsAreInterruptions(t *testing.T) {
	cut := context.Canceled
	for want, err := range map[string]error{
		"interrupted":                       cut,
		"reading x: interrupted":            fmt.Errorf("reading x: %w", cut),
		"interrupted; the next run goes on": fmt.Errorf("interrupted; the next run goes on: %w", cut),
		"no context canceled it":            errors.New("no context canceled it"),
	} {
		if got := exit.Text(err); got != want {
			t.Errorf("%v reads %q, want %q", err, got, want)
		}
	}
}
