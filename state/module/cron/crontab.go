package cron

import (
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// tab is a parsed crontab.
type tab struct {
	above     []string // lines above the marker, which are not managed
	variables []variable
	jobs      []job // that run at times
	specials  []job // that run at @reboot, @daily and the like
}

type variable struct{ name, value string }

// job is a line that runs a command. A nil comment or id differs from an empty one in the line written above
// the job.
type job struct {
	times    [5]string // minute, hour, day of the month, month, day of the week
	special  string    // such as @daily, instead of times
	command  string
	comment  *string
	id       *string
	disabled bool
}

const (
	line       = "# Lines below here are managed by Salt, do not edit"
	identifier = "SALT_CRON_IDENTIFIER"
	noID       = "NO ID SET"
	off        = "#DISABLED#"
)

// tabs caches parsed crontabs, since many states share one.
type tabs struct {
	mu     sync.Mutex
	parsed map[string]parsedTab
}

type parsedTab struct {
	of   *host.Host
	text string
	tab  *tab
}

// parse returns a user's parsed crontab, which callers must not change.
func (t *tabs) parse(h *host.Host, user, text string) *tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.parsed[user]; ok && p.of == h && p.text == text {
		return p.tab
	}
	p := parsedTab{of: h, text: text, tab: parse(text)}
	t.parsed[user] = p
	return p.tab
}

func parse(text string) *tab {
	t := &tab{}
	r := reader{tab: t}
	text = lineBreaks(text)
	if text == "" {
		return t
	}
	below := false
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case l == line:
			below = true
		case below:
			r.read(l)
		default:
			t.above = append(t.above, l)
		}
	}
	return t
}

// lineBreaks converts all line breaks to \n.
func lineBreaks(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// reader parses the managed part. A comment and an identifier apply to the next job.
type reader struct {
	tab         *tab
	comment, id *string
}

func (r *reader) read(l string) {
	l, disabled := strings.CutPrefix(l, off)
	switch words := strings.Split(l, " "); {
	case strings.HasPrefix(l, "@"):
		if f := strings.Fields(l); len(f) > 1 {
			r.tab.specials = append(r.tab.specials,
				r.job(job{special: f[0], command: strings.Join(f[1:], " "), disabled: disabled}))
		}
	case strings.HasPrefix(l, "#"):
		r.note(strings.TrimLeft(l, "# "))
	case isVariable(l):
		name, v, _ := strings.Cut(l, "=")
		r.tab.variables = append(r.tab.variables, variable{name, v})
	case len(words) > 5:
		r.tab.jobs = append(r.tab.jobs,
			r.job(job{times: [5]string(words[:5]), command: strings.Join(words[5:], " "), disabled: disabled}))
	}
}

// isVariable distinguishes NAME=value from a job whose command contains an equals sign.
func isVariable(l string) bool {
	i := strings.IndexByte(l, '=')
	space := strings.IndexByte(l, ' ')
	return i > 0 && (space < 0 || i < space)
}

// note records a comment and the identifier at its end for the next job.
func (r *reader) note(text string) {
	if before, after, ok := strings.Cut(text, identifier); ok {
		text = strings.TrimRight(before, " \t")
		after, _, _ = strings.Cut(after, identifier)
		if len(after) > 1 {
			id := after[1:]
			r.id = &id
		}
	}
	if r.comment != nil {
		text = *r.comment + "\n" + text
	}
	r.comment = &text
}

func (r *reader) job(j job) job {
	j.comment, j.id = r.comment, r.id
	r.comment, r.id = nil, nil
	return j
}

// String returns the text of the crontab.
func (t *tab) String() string {
	var b strings.Builder
	for _, l := range t.above {
		b.WriteString(l + "\n")
	}
	b.WriteString(line + "\n")
	for _, v := range t.variables {
		b.WriteString(v.name + "=" + v.value + "\n")
	}
	for _, j := range t.jobs {
		j.write(&b)
	}
	for _, j := range t.specials {
		j.write(&b)
	}
	return b.String()
}

func (j job) write(b *strings.Builder) {
	if j.comment != nil || j.id != nil {
		b.WriteByte('#')
		if text := orEmpty(j.comment); text != "" {
			if j.special != "" {
				text = strings.TrimRight(text, " \t\n")
			}
			b.WriteString(" " + strings.ReplaceAll(text, "\n", "\n# "))
		}
		if id := orEmpty(j.id); id != "" {
			b.WriteString(" " + identifier + ":" + id)
		}
		b.WriteByte('\n')
	}
	if j.disabled {
		b.WriteString(off)
	}
	if j.special != "" {
		b.WriteString(j.special + " " + j.command + "\n")
		return
	}
	b.WriteString(strings.Join(j.times[:], " ") + " " + j.command + "\n")
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
