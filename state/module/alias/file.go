package alias

import "strings"

// entry is an alias with its lines, or lines without an alias.
type entry struct {
	name    string // "" for lines without an alias
	target  string
	comment string // the rest of the line after the target, with the blanks before it
	text    string // the original lines
}

// file is the content of /etc/aliases, in order.
type file []*entry

// parse parses the file. A line that starts with a blank continues the previous entry.
func parse(text string) file {
	var f file
	for l := range strings.SplitAfterSeq(text, "\n") {
		switch {
		case l == "":
		case len(f) > 0 && f[len(f)-1].name != "" && strings.ContainsAny(l[:1], " \t") && strings.TrimSpace(l) != "":
			f[len(f)-1].goOn(l)
		default:
			f = append(f, parseEntry(l))
		}
	}
	return f
}

func parseEntry(l string) *entry {
	e := &entry{text: l}
	body, comment := cutComment(l)
	name, target, ok := strings.Cut(body, ":")
	if ok && strings.TrimSpace(name) != "" {
		e.name, e.target, e.comment = strings.TrimSpace(name), strings.TrimSpace(target), comment
	}
	return e
}

// cutComment splits a line before its comment. Blanks before the comment belong to it.
func cutComment(l string) (body, comment string) {
	l = strings.TrimRight(l, "\r\n")
	i := strings.IndexByte(l, '#')
	if i < 0 {
		return l, ""
	}
	body = strings.TrimRight(l[:i], " \t")
	return body, l[len(body):]
}

func (e *entry) goOn(l string) {
	body, _ := cutComment(l)
	e.target = strings.TrimSpace(e.target + " " + strings.TrimSpace(body))
	e.text += l
}

// find returns the entry of an alias, or nil.
func (f file) find(name string) *entry {
	for _, e := range f {
		if e.name == name {
			return e
		}
	}
	return nil
}

// with returns the text with an alias set, at its first entry or at the end. Without a target the alias is
// removed.
func (f file) with(name, target string) string {
	var b strings.Builder
	done := target == ""
	for _, e := range f {
		switch {
		case e.name != name:
			b.WriteString(e.text)
		case !done:
			b.WriteString(name + ": " + target + e.comment + "\n")
			done = true
		}
	}
	if !done {
		if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(name + ": " + target + "\n")
	}
	return b.String()
}
