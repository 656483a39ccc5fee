package pkgrepo

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// sectionFile is a file of settings below headings in square brackets, as yum, zypper and pacman have
// them. It is kept as lines, so that whatever an edit is not about stays as it was.
type sectionFile struct {
	lines []string
	// repeat says that a setting of several values is several lines, and not one whose continuation
	// is indented.
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

// heading reads [name].
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

// find gives the lines of a section: its heading, and the end of it.
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

// setting is a line of a section, with the lines that continue it.
type setting struct {
	key, value string
	start, end int
}

// settings reads a section. Comments and what is no setting are left out.
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

// values are the settings of a section by name, several of one name on lines of their own.
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

// comments are the lines of a section that begin with a number sign, without it.
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

// add makes a section at the end of the file.
func (f *sectionFile) add(name string) {
	if len(f.lines) > 0 && strings.TrimSpace(f.lines[len(f.lines)-1]) != "" {
		f.lines = append(f.lines, "")
	}
	f.lines = append(f.lines, "["+name+"]")
}

// drop takes a setting out of a section and says where it was, or where a new one belongs.
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

// set gives a setting its value, in the place that it had.
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

// setComments gives a section other comments, behind its settings.
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
	f.lines = slices.Replace(f.lines, start, end, kept...)
}

// remove takes a section away.
func (f *sectionFile) remove(name string) {
	if start, end, ok := f.find(name); ok {
		f.lines = slices.Delete(f.lines, start, end)
	}
}
