package accounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// FilesOf returns the account files with lines about users, or about groups.
func FilesOf(kind host.Kind) []string {
	if kind == host.KindGroup {
		return []string{"/etc/group", "/etc/gshadow"}
	}
	return []string{"/etc/passwd", "/etc/shadow", "/etc/subuid", "/etc/subgid"}
}

// Line holds the lines of one name in an account file. It may be several lines: a name may have several ranges of
// subordinate IDs.
type Line struct {
	Text  string // with line feeds; "" for a name that the file does not have
	After string // the name in the previous line; "" for the first line
}

// LineOf reads a name's line.
func LineOf(h *host.Host, file, name string) (Line, error) {
	data, err := h.Files.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Line{}, err
	}
	var found Line
	before := ""
	for line := range strings.Lines(string(data)) {
		account := accountOf(line)
		if account == name {
			if found.Text == "" {
				found.After = before
			}
			found.Text += line
		}
		before = account
	}
	return found, nil
}

// accountOf returns the account name of a line.
func accountOf(line string) string {
	name, _, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
	return name
}

// SetLine restores the line of a name with all its fields and its position in the file, which the account tools cannot
// do. It holds the lock of the account tools while it writes.
func SetLine(ctx context.Context, h *host.Host, file, name string, line Line) error {
	if err := h.Accounts.Allowed("changing " + file); err != nil {
		return err
	}
	done, err := holdLock(ctx, h.Files)
	if err != nil {
		return err
	}
	defer done()
	data, err := h.Files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && line.Text == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring the line of %s: %w", name, err)
	}
	return h.Files.Write(file, host.NewFile{Content: strings.NewReader(withLine(string(data), name, line)), UID: -1,
		GID: -1})
}

// withLine returns the text of an account file in which a name has the given line.
func withLine(text, name string, line Line) string {
	lines := slices.Collect(strings.Lines(text))
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n"
	}
	at := slices.IndexFunc(lines, func(l string) bool { return accountOf(l) == name })
	lines = slices.DeleteFunc(lines, func(l string) bool { return accountOf(l) == name })
	if line.Text == "" {
		return strings.Join(lines, "")
	}
	if at < 0 {
		at = len(lines)
		if i := slices.IndexFunc(lines, func(l string) bool { return accountOf(l) == line.After }); i >= 0 {
			at = i + 1
		} else if line.After == "" {
			at = 0
		}
	}
	return strings.Join(slices.Insert(lines, at, line.Text), "")
}
