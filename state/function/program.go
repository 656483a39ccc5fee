package function

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Output runs a program that only reads, and returns its output and exit code.
func (f *Facts) Output(ctx context.Context, l host.Line) (host.Output, error) {
	l.Quiet = true
	l.Text = strings.Join(l.Argv, " ")
	out, err := f.Host.Shell(ctx, l)
	out.Stdout, out.Stderr = strings.TrimRight(toText(out.Stdout), " \t\r\n"),
		strings.TrimRight(toText(out.Stderr), " \t\r\n")
	return out, err
}

// Stdout runs a program that only reads, and returns its standard output. If the program fails, the error has the
// last line of its standard error.
func (f *Facts) Stdout(ctx context.Context, argv ...string) (string, error) {
	out, err := f.Output(ctx, host.Line{Argv: argv})
	if err != nil {
		return "", err
	}
	if out.Code != 0 {
		return "", fmt.Errorf("%s ended with code %d: %s", argv[0], out.Code, LastLine(out.Stderr))
	}
	return out.Stdout, nil
}

// LastLine returns the last line of a text.
func LastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// SortedKeys returns the keys of a map in order.
func SortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// toText replaces invalid UTF-8.
func toText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// CommandResult returns the result of a command, under the keys that Salt uses.
func CommandResult(out host.Output) *value.Map {
	return value.NewMap("pid", out.PID, "retcode", out.Code, "stdout", toText(out.Stdout), "stderr", toText(out.Stderr))
}
