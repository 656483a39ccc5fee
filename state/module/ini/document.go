package ini

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// document is a file as lines. A section may occur more than once; the last value of an option is used.
type document struct {
	lines     []line
	separator string
}

// line is a line of the file, or an option with its continuation lines.
type line struct {
	kind    kind
	section string // the section of the line, "" above all sections
	text    string // the original text without the line end
	key     string // of an option
	value   string // of an option
}

type kind int

const (
	other kind = iota // blank or not recognized
	comment
	heading
	option
)

func parse(text, separator string) *document {
	d := &document{separator: separator}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if text == "" {
		return d
	}
	section, indent := "", 0
	for raw := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		l := line{section: section, text: raw}
		trimmed := strings.TrimSpace(raw)
		deep := len(raw) - len(strings.TrimLeft(raw, " \t"))
		last := len(d.lines) - 1
		switch {
		case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, ";"):
			l.kind = comment
		case len(trimmed) > 2 && trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']':
			section, indent = trimmed[1:len(trimmed)-1], 0
			l.kind, l.section = heading, section
		case trimmed != "" && deep > indent && last >= 0 && d.lines[last].kind == option:
			d.lines[last].text += "\n" + raw
			d.lines[last].value += "\n" + raw
			continue
		default:
			if key, v, ok := d.cut(trimmed); ok {
				l.kind, l.key, l.value, indent = option, key, v, deep
			}
		}
		d.lines = append(d.lines, l)
	}
	return d
}

// cut splits an option into key and value.
func (d *document) cut(text string) (key, v string, ok bool) {
	if text == "" {
		return "", "", false
	}
	i := strings.Index(text[1:], d.separator)
	if i < 0 {
		return "", "", false
	}
	return strings.TrimSpace(text[:i+1]), strings.TrimSpace(text[i+1+len(d.separator):]), true
}

func (d *document) String() string {
	var text strings.Builder
	for _, l := range d.lines {
		text.WriteString(l.text)
		text.WriteByte('\n')
	}
	return text.String()
}

func (d *document) has(section string) bool {
	return slices.ContainsFunc(d.lines, func(l line) bool { return l.kind == heading && l.section == section })
}

// keys returns the options of a section in order, without duplicates.
func (d *document) keys(section string) []string {
	var keys []string
	for _, l := range d.lines {
		if l.kind == option && l.section == section && !slices.Contains(keys, l.key) {
			keys = append(keys, l.key)
		}
	}
	return keys
}

func (d *document) find(section, key string) int {
	for i := len(d.lines) - 1; i >= 0; i-- {
		if l := d.lines[i]; l.kind == option && l.section == section && l.key == key {
			return i
		}
	}
	return -1
}

func (d *document) get(section, key string) (string, bool) {
	i := d.find(section, key)
	if i < 0 {
		return "", false
	}
	return d.lines[i].value, true
}

// set changes an option in place. A new option replaces a comment that contains it, or follows the last option
// of the section.
func (d *document) set(section, key, v string) {
	between := " " + d.separator + " "
	if strings.TrimSpace(d.separator) == "" {
		between = d.separator
	}
	l := line{kind: option, section: section, key: key, value: v, text: key + between + v}
	if i := d.find(section, key); i >= 0 {
		old := d.lines[i]
		first, _, _ := strings.Cut(old.text, "\n")
		value, _, _ := strings.Cut(old.value, "\n")
		if start := strings.LastIndex(first, value); value != "" && start > len(key) {
			l.text = first[:start] + v
		}
		d.lines[i] = l
		return
	}
	for i, c := range d.lines {
		if c.kind != comment || c.section != section {
			continue
		}
		if name, _, ok := d.cut(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(c.text), "#;"))); ok && name == key {
			d.lines[i] = l
			return
		}
	}
	at := d.end(section)
	d.lines = append(d.lines, line{})
	copy(d.lines[at+1:], d.lines[at:])
	d.lines[at] = l
}

// end returns the line at which to insert a new option: after the last line of the section that is not blank.
func (d *document) end(section string) int {
	end := 0
	for i, l := range d.lines {
		if l.section == section && (l.kind != other || strings.TrimSpace(l.text) != "") {
			end = i + 1
		}
	}
	return end
}

// add appends an empty section.
func (d *document) add(section string) {
	if n := len(d.lines); n > 0 && strings.TrimSpace(d.lines[n-1].text) != "" {
		d.lines = append(d.lines, line{section: d.lines[n-1].section})
	}
	d.lines = append(d.lines, line{kind: heading, section: section, text: "[" + section + "]"})
}

// remove removes all lines of an option and returns its value.
func (d *document) remove(section, key string) (string, bool) {
	v, ok := d.get(section, key)
	d.lines = structsort.Without(d.lines, func(l line) bool {
		return l.kind == option && l.section == section && l.key == key
	})
	return v, ok
}

// drop removes a section with its content.
func (d *document) drop(section string) {
	d.lines = structsort.Without(d.lines, func(l line) bool { return section != "" && l.section == section })
}
