package pkgrepo

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// sectionFile is a file with sections of settings, as yum, zypper and pacman have them. It keeps the lines, so
// that an edit preserves everything else.
type sectionFile struct {
	lines []string
	// repeat means that a setting with several values is repeated. Otherwise it has indented continuation lines.
	repeat bool
}

func parseSections(text string, repeat bool) *sectionFile {
	f := &sectionFile{repeat: repeat}
	if text = strings.TrimSuffix(text, "\n"); text != "" {
		f.lines = strings.Split(text, "\n")
	}
	return f
}

func (f *sectionFile) text() string {
	if len(f.lines) == 0 {
		return ""
	}
	return strings.Join(f.lines, "\n") + "\n"
}

// heading returns the name in a line such as [name].
func heading(line string) (name string, ok bool) {
	line = strings.TrimSpace(line)
	if len(line) < 3 || line[0] != '[' || line[len(line)-1] != ']' {
		return "", false
	}
	return line[1 : len(line)-1], true
}

func (f *sectionFile) names() []string {
	var names []string
	for _, line := range f.lines {
		if name, ok := heading(line); ok {
			names = append(names, name)
		}
	}
	return names
}

// find returns the index of the heading of a section, and the index after the section's last line.
func (f *sectionFile) find(name string) (start, end int, ok bool) {
	start = slices.IndexFunc(f.lines, func(line string) bool {
		found, ok := heading(line)
		return ok && found == name
	})
	if start < 0 {
		return 0, 0, false
	}
	for end = start + 1; end < len(f.lines); end++ {
		if _, ok := heading(f.lines[end]); ok {
			break
		}
	}
	return start, end, true
}

// setting is a setting with the range of its lines, including continuations.
type setting struct {
	key, value string
	start, end int
}

// settings returns the settings of a section, in order.
func (f *sectionFile) settings(name string) []setting {
	start, end, _ := f.find(name)
	var all []setting
	for i := start + 1; i < end; i++ {
		line := f.lines[i]
		trimmed := strings.TrimSpace(line)
		continues := line != trimmed && strings.TrimLeft(line, " \t") != line
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case continues && !f.repeat && len(all) > 0 && all[len(all)-1].end == i:
			last := &all[len(all)-1]
			last.value = strings.TrimPrefix(last.value+"\n"+trimmed, "\n")
			last.end = i + 1
		default:
			key, v, _ := strings.Cut(trimmed, "=")
			all = append(all, setting{strings.TrimSpace(key), strings.TrimSpace(v), i, i + 1})
		}
	}
	return all
}

// values returns the settings of a section by name. Several values of a setting are separated by newlines.
func (f *sectionFile) values(name string) *value.Map {
	m := value.NewMap()
	for _, s := range f.settings(name) {
		if old, ok := m.Get(s.key); ok && f.repeat {
			m.Set(s.key, value.Str(old)+"\n"+s.value)
		} else {
			m.Set(s.key, s.value)
		}
	}
	return m
}

// comments returns the comments of a section.
func (f *sectionFile) comments(name string) []string {
	start, end, _ := f.find(name)
	var comments []string
	for i := start + 1; i < end; i++ {
		if text, ok := strings.CutPrefix(strings.TrimSpace(f.lines[i]), "#"); ok {
			comments = append(comments, strings.TrimSpace(text))
		}
	}
	return comments
}

// add appends an empty section.
func (f *sectionFile) add(name string) {
	if len(f.lines) > 0 && strings.TrimSpace(f.lines[len(f.lines)-1]) != "" {
		f.lines = append(f.lines, "")
	}
	f.lines = append(f.lines, "["+name+"]")
}

// drop removes a setting from a section. It returns the line at which to insert it again: its former line, or
// the end of the section.
func (f *sectionFile) drop(name, key string) int {
	_, end, _ := f.find(name)
	for end > 0 && strings.TrimSpace(f.lines[end-1]) == "" {
		end--
	}
	at := end
	for {
		all := f.settings(name)
		i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
		if i < 0 {
			return min(at, len(f.lines))
		}
		if at == end || all[i].start < at {
			at = all[i].start
		}
		f.lines = slices.Delete(f.lines, all[i].start, all[i].end)
		end -= all[i].end - all[i].start
	}
}

// set sets a setting at its former line, or at the end of the section.
func (f *sectionFile) set(name, key, text, equals string) {
	at := f.drop(name, key)
	values := strings.Split(text, "\n")
	lines := []string{key + equals + values[0]}
	for _, more := range values[1:] {
		if f.repeat {
			lines = append(lines, key+equals+more)
		} else {
			lines = append(lines, " "+more)
		}
	}
	f.lines = slices.Insert(f.lines, at, lines...)
}

// setComments replaces the comments of a section; the new ones follow its settings.
func (f *sectionFile) setComments(name string, comments []string) {
	start, end, _ := f.find(name)
	kept := slices.DeleteFunc(slices.Clone(f.lines[start:end]), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "#")
	})
	at := len(kept)
	for at > 0 && strings.TrimSpace(kept[at-1]) == "" {
		at--
	}
	for i, text := range comments {
		kept = slices.Insert(kept, at+i, "# "+text)
	}
	f.lines = slices.Insert(slices.Delete(f.lines, start, end), start, kept...)
}

// remove removes a section.
func (f *sectionFile) remove(name string) {
	if start, end, ok := f.find(name); ok {
		f.lines = slices.Delete(f.lines, start, end)
	}
}
