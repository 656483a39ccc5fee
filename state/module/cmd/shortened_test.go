package cmd

import (
	"strings"
	"testing"
)

func TestLongOutputIsShortened(t *testing.T) {
	long := "first\n" + strings.Repeat("é", maxShown) + "\nlast"
	got := shortened(long)
	if len(got) > maxShown+100 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast") ||
		!strings.Contains(got, "bytes are left out here]") {
		t.Errorf("%d bytes, %q … %q", len(got), got[:20], got[len(got)-20:])
	}
	if shortened("short") != "short" {
		t.Error("a short output was changed")
	}
}
