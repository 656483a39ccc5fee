package clone

import (
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// most is how much of a file is read: git's own files of configuration are small.
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

// setting is one line of git's configuration. The section is without the part in quotes, and in lower case as the key.
type setting struct{ section, key, value string }

// settings reads the format of git's configuration. It takes what git would refuse for something, too.
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

// unquoted is a value without quotes, escapes and a comment.
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
