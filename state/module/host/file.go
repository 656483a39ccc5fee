package host

import (
	"slices"
	"strings"
)

// file is the content of /etc/hosts. All lines of an address are merged into one entry.
type file struct {
	text    string
	entries []*entry
	at      map[string]*entry // by address
}

type entry struct {
	ip      string // "" for a line with only a comment
	names   []string
	comment string
}

func parse(text string) *file {
	f := &file{text: text, at: map[string]*entry{}}
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		if l[0] == '#' {
			f.entries = append(f.entries, &entry{comment: l})
			continue
		}
		l, comment, _ := strings.Cut(l, "#")
		words := strings.Fields(l)
		e := f.entry(words[0])
		e.names = append(e.names, words[1:]...)
		if comment = strings.TrimLeft(comment, " \t"); comment != "" {
			e.comment = comment
		}
	}
	return f
}

// entry returns the entry of an address, which it appends if it does not exist.
func (f *file) entry(ip string) *entry {
	e, ok := f.at[ip]
	if !ok {
		e = &entry{ip: ip}
		f.at[ip] = e
		f.entries = append(f.entries, e)
	}
	return e
}

// has reports whether an address has a name.
func (f *file) has(ip, name string) bool {
	e, ok := f.at[ip]
	return ok && slices.Contains(e.names, name)
}

func (f *file) String() string {
	var b strings.Builder
	for _, e := range f.entries {
		l := e.comment
		if e.ip != "" {
			l = e.ip + "\t\t" + strings.Join(e.names, " ")
			if e.comment != "" {
				l += "\t\t# " + e.comment
			}
		}
		b.WriteString(strings.TrimSpace(l) + "\n")
	}
	return b.String()
}

// without returns the text without a name in the lines of an address. Lines without other names are deleted.
func without(text, ip, name string) string {
	return rewrite(text, ip, func(names []string, comment string) string {
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		if len(names) == 0 {
			return ""
		}
		l := ip + "\t\t" + strings.Join(names, " ") + " "
		if comment != "" {
			l += "# " + comment
		}
		return l + "\n"
	})
}

// replaced returns the text with the names of an address set in its first line, and without its other lines. If names
// is "", it deletes all of them.
func replaced(text, ip, names string) string {
	l := ip + "\t\t" + names + "\n"
	if names == "" {
		l = ""
	}
	found := false
	text = rewrite(text, ip, func([]string, string) string {
		if found {
			return ""
		}
		found = true
		return l
	})
	if found {
		return text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + l
}

// rewrite returns the text with each line of an address replaced by the result of line.
func rewrite(text, ip string, line func(names []string, comment string) string) string {
	var b strings.Builder
	for l := range strings.SplitAfterSeq(text, "\n") {
		body, comment, _ := strings.Cut(strings.TrimSpace(l), "#")
		words := strings.Fields(body)
		if len(words) == 0 || words[0] != ip {
			b.WriteString(l)
			continue
		}
		b.WriteString(line(words[1:], strings.TrimLeft(comment, " \t")))
	}
	return b.String()
}
