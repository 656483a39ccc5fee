package units

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/host"
)

const (
	journalLines = 10      // number of journal lines in an error
	journalBytes = 2 << 10 // size limit of all of these lines
	lineBytes    = 500     // size limit of one of them

	// journalEntries is the number of entries that are read. It is larger than journalLines, since entries of systemd
	// itself, several for each start, are dropped.
	journalEntries = 100
)

// Journal returns the lines that a unit logged since a time, oldest first, without control characters. The lines are
// not cut: a caller that redacts them must do so before it calls LastLines. The result is empty if systemd does not run
// or keeps no journal.
func Journal(ctx context.Context, h *host.Host, name string, since time.Time) []string {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return nil
	}
	if s, ok := u.init.(*systemd); ok {
		return s.journal(ctx, host.UnitName(name), since)
	}
	return nil
}

// LastLines returns the last lines of a journal that an error shows: at most 10, which have at most 2 KiB. A longer
// line is cut between two words.
func LastLines(lines []string) []string {
	left := journalBytes
	var last []string
	for _, line := range slices.Backward(lines) {
		if line = cutLine(line); line == "" {
			continue
		}
		if left -= len(line) + 1; left < 0 || len(last) == journalLines {
			break
		}
		last = append(last, line)
	}
	slices.Reverse(last)
	return last
}

// cutLine cuts a long line between two words, since a redactor does not find a part of a secret.
func cutLine(line string) string {
	if len(line) <= lineBytes {
		return line
	}
	at := strings.LastIndexByte(line[:lineBytes+1], ' ')
	return line[:max(at, 0)] + "…"
}

// journal returns the lines that a unit logged since a time.
func (s *systemd) journal(ctx context.Context, unit string, since time.Time) []string {
	env := host.Variables(process.Environ(), "LC_ALL=C")
	// Recent lines may not be written yet. A failed sync is ignored.
	_, _ = s.commands.Run(ctx, host.Command{Argv: []string{"journalctl", "--sync"}, Env: env, Quiet: true,
		Limit: 5 * time.Second})
	out, err := s.commands.Run(ctx, host.Command{
		Argv: []string{"journalctl", "--no-pager", "-q", "-o", "json", "-u", unit, "-n", fmt.Sprint(journalEntries), "-S",
			fmt.Sprintf("@%d.%06d", since.Unix(), since.Nanosecond()/1000)},
		Env: env, Quiet: true, Limit: 10 * time.Second,
	})
	if err != nil {
		return nil
	}
	return parseJournal(out.Stdout)
}

// parseJournal returns the lines of journal entries, each a JSON object on a line of text. It returns entries of
// systemd about starts and ends only if the unit itself logged nothing.
func parseJournal(text string) []string {
	var own, systemds []string
	for line := range strings.SplitSeq(text, "\n") {
		var entry struct {
			Identifier string          `json:"SYSLOG_IDENTIFIER"`
			PID        string          `json:"_PID"`
			Message    json.RawMessage `json:"MESSAGE"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		to := &own
		if entry.PID == "1" {
			to = &systemds
		}
		*to = append(*to, journalMessage(entry.Identifier, entry.Message)...)
	}
	if len(own) > 0 {
		return own
	}
	return systemds
}

// journalMessage returns the lines of a message, which is a string, or a list of bytes if it is not UTF-8.
func journalMessage(identifier string, raw json.RawMessage) []string {
	var message string
	if json.Unmarshal(raw, &message) != nil {
		var numbers []byte
		var list []int
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		for _, n := range list {
			numbers = append(numbers, byte(n))
		}
		message = strings.ToValidUTF8(string(numbers), "\uFFFD")
	}
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		if line = printable(line); line != "" {
			lines = append(lines, strings.TrimPrefix(printable(identifier)+": "+line, ": "))
		}
	}
	return lines
}

// escapes matches the sequences with which programs colour their output and move the cursor.
var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]") })

// printable returns a line without escape sequences, control characters and characters that reorder text.
func printable(line string) string {
	line = strings.Map(func(c rune) rune {
		if c == '\t' {
			return ' '
		}
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
			return -1
		}
		return c
	}, escapes().ReplaceAllString(line, ""))
	return strings.TrimRight(line, " ")
}
