package alternatives

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// group is a link group: the choices for a name.
type group struct {
	manual  bool
	link    string // the public path, such as /usr/bin/editor
	choices []choice
	current string // the path that the name leads to; "" for none
}

type choice struct {
	path     string
	priority int
}

// read returns a link group from the files of Debian's or Red Hat's tool. ok is false if it does not exist.
func read(h *host.Host, name string) (g group, ok bool, err error) {
	for _, dir := range []string{"/var/lib/dpkg/alternatives/", "/var/lib/alternatives/", "/var/lib/rpm/alternatives/"} {
		g, err = host.Parsed(h, dir+name, parse)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return g, false, nil
	}
	if err != nil {
		return g, false, err
	}
	// A path that is not a link counts as a group without a current choice.
	g.current, _ = h.Files.Readlink("/etc/alternatives/" + name)
	return g, true, nil
}

// parse parses the file of a group: the mode, the link, name and link of each slave, an empty line, and for
// each choice its path, its priority and a path for each slave. Red Hat's tool may add a family after the path.
func parse(text string) (g group) {
	lines := strings.Split(text, "\n")
	next := func() string {
		if len(lines) == 0 {
			return ""
		}
		l := lines[0]
		lines = lines[1:]
		return l
	}
	g.manual, g.link = next() == "manual", next()
	slaves := 0
	for l := next(); l != ""; l = next() {
		next()
		slaves++
	}
	for l := next(); path.IsAbs(l); l = next() {
		l, _, _ = strings.Cut(l, "@")
		g.choices = append(g.choices, choice{l, priority(next())})
		for range slaves {
			next()
		}
	}
	return g
}

// priority parses a number, which Red Hat's tool may follow by the name of a service.
func priority(text string) (n int) {
	text, _, _ = strings.Cut(text, " ")
	sign := 1
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = rest, -1
	}
	for _, r := range text {
		if r < '0' || r > '9' || n > 1<<30 {
			break
		}
		n = n*10 + int(r-'0')
	}
	return sign * n
}

func (g group) has(path string) bool {
	for _, c := range g.choices {
		if c.path == path {
			return true
		}
	}
	return false
}

// best returns the choice of the automatic mode: the first with the highest priority.
func (g group) best() string {
	var best choice
	for i, c := range g.choices {
		if i == 0 || c.priority > best.priority {
			best = c
		}
	}
	return best.path
}

// without returns the group without a choice. If that was the current one, or the mode is automatic, the best of the
// others becomes the current one.
func (g group) without(path string) group {
	var rest []choice
	for _, c := range g.choices {
		if c.path != path {
			rest = append(rest, c)
		}
	}
	g.choices = rest
	if g.current == path || !g.manual {
		g.manual, g.current = false, g.best()
	}
	return g
}
