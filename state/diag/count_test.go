package diag_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n          int
		noun, want string
	}{
		{0, "file", "0 files"}, {1, "file", "1 file"}, {2, "file", "2 files"}, {1, "try", "1 try"}, {3, "try", "3 tries"},
		{2, "other entry", "2 other entries"},
	} {
		if got := diag.Count(c.n, c.noun); got != c.want {
			t.Errorf("%d %s is %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}
