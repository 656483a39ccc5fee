package alias

import "strings"

// entry is an alias with the lines that say it, or lines that say none.
type entry struct {
	name    string // "" for none
	target  string
	comment string // what follows the target, its blanks included
	text    string // the lines as they are
}

// file is /etc/aliases, in order.
type file []*entry

// parse reads the file. A line that starts with a blank goes on with what came before.
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

// cutComment cuts a line where a comment starts: at its start or after a blank. The blanks before it
// stay with it.
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

// find gives the entry of an alias, or nil.
func (f file) find(name string) *entry {
	for _, e := range f {
		if e.name == name {
			return e
		}
	}
	return nil
}

// with is the file's text with an alias set in the place of its first entry, or at the end. Without a
// target the alias is gone.
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
