package clone

import (
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// most is the maximum number of bytes that are read of a file: git's own configuration files are small.
const most = 1 << 20

// read reads a regular file.
func (c check) read(p string) (string, error) { return c.readUpTo(p, most) }

func (c check) readUpTo(p string, most int64) (string, error) {
	f, err := c.root.OpenFile(p, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return "", err
	}
	f, err = walk.Regular(f, nil)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	return string(data), err
}

// setting is one line of git's configuration. section is the section without the part in quotes; section and key are in
// lower case.
type setting struct{ section, key, value string }

// settings parses a git configuration file. It also accepts files that git refuses.
func settings(text string) (all []setting) {
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		line = strings.TrimSpace(line)
		for strings.HasPrefix(line, "[") {
			header, rest, _ := strings.Cut(line[1:], "]")
			for strings.Count(header, `"`)%2 == 1 && rest != "" { // a bracket in quotes
				more, after, _ := strings.Cut(rest, "]")
				header, rest = header+"]"+more, after
			}
			name, _, _ := strings.Cut(header, `"`)
			name, _, _ = strings.Cut(strings.TrimSpace(name), ".")
			section, line = strings.ToLower(name), strings.TrimSpace(rest)
		}
		key, v, given := strings.Cut(line, "=")
		if given && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			all = append(all, setting{section, strings.ToLower(strings.TrimSpace(key)), unquoted(strings.TrimSpace(v))})
		}
	}
	return all
}

// unquoted returns a value without its quotes, escapes and comment.
func unquoted(v string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch {
		case v[i] == '"':
			quoted = !quoted
		case v[i] == '\\' && i+1 < len(v):
			i++
			b.WriteByte(v[i])
		case (v[i] == '#' || v[i] == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(v[i])
		}
	}
	return strings.TrimSpace(b.String())
}
