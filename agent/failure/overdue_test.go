package failure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestErrorsOfWorkWhoseTimeIsOverNameTheSetting(t *testing.T) {
	err := failure.Within(t.Context(), "converge.timeout", time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return diag.Internal.Hint(fmt.Errorf("reading a file: %w", ctx.Err()), "see dmesg")
	})
	if err == nil || err.Error() != "converge.timeout (1ms) was over: reading a file" ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if hint := diag.HintOf(err); !strings.Contains(hint, "converge.timeout") || strings.Contains(hint, "dmesg") {
		t.Errorf("hint %q", hint)
	}
	other := errors.New("another reason")
	if err := failure.Within(t.Context(), "converge.timeout", time.Hour,
		func(context.Context) error { return other }); !errors.Is(err, other) {
		t.Errorf("error %v", err)
	}
}
