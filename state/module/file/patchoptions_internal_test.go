package file

import (
	"strings"
	"testing"
)

func TestPatchOptions(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "-t --fuzz=1": "-t --fuzz=1", "-lu -F 3": "-lu -F 3", "--ignore-whitespace -p1 -l": "--ignore-whitespace -l",
		"--strip 2 --binary": "--binary", "--fuzz 2": "--fuzz 2",
	} {
		if got, _, err := patchOptions(text, nil); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]int{"-p1": 1, "-p 2": 2, "--strip=3": 3, "-l --strip 4 -t": 4} {
		if _, got, err := patchOptions(text, nil); err != nil || got != want {
			t.Errorf("%q: strip %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"-R", "-lR", "--reverse", "--rev", "-o /etc/passwd", "-l -o/x", "--out=/x", "--dir=/", "-d /", "-i /x", "--inp /x",
		"-r/x", "-b", "-lb", "-z.bak", "--suffix=.x", "-B/x", "-V numbered", "-Y x", "-e", "--ed", "-g 1", "--get=1", "-N",
		"--dry-run", "-T", "-Z", "--fuzz", "-F", "-p", "--strip", "--binary=1", "file", "-", "--", "-px",
	} {
		if got, _, err := patchOptions(text, nil); err == nil {
			t.Errorf("%q is allowed: %q", text, got)
		}
	}
}
