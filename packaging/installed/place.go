// Package installed determines which files a package or an image installs besides the release: the release's units
// and its rendered configuration, with paths that are valid there.
//
// A release that an agent deploys is reached through links, such as /srv/projects/NAME/current. A package has no
// links, and its files are below the prefix. So paths through the links are rewritten to the prefix, and paths to
// other parts of a deployed project are errors, since they would not exist on the host.
package installed

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Place is the location of an installed release.
type Place struct {
	Name   string // the project
	Prefix string
}

// roots returns the directories of a project on a host that an agent deploys to.
func (p Place) roots() []string {
	roots := []string{"/srv/projects/" + p.Name, "/srv/projects/%p", "/srv/projects/%N", "/srv/service"}
	if p.Name == "base" {
		roots = append(roots, "/srv/base")
	}
	return roots
}

// Text rewrites the paths of a text that lead through the release's links.
func (p Place) Text(text string) (string, error) {
	for _, root := range p.roots() {
		var err error
		if text, err = p.below(root, text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// below rewrites the paths below one root.
func (p Place) below(root, text string) (string, error) {
	var out strings.Builder
	for {
		i := strings.Index(text, root)
		if i < 0 {
			return out.String() + text, nil
		}
		before, rest := text[:i], text[i+len(root):]
		out.WriteString(before)
		switch {
		case startsInside(before) || continues(rest), within(p.Prefix, text[i:]):
			out.WriteString(root)
			text = rest
			continue
		}
		link, after := component(rest)
		switch link {
		case "current", "next", "project":
			out.WriteString(p.Prefix)
			text = after
		default:
			path := root + strings.TrimSuffix(rest, after)
			return "", diag.Package.Hint(fmt.Errorf("%s exists only on a host to which an agent deploys", path),
				"name a path below %s/current, which becomes %s; data belongs in a directory that both have, such as "+
					"StateDirectory=%s gives (/var/lib/%s)", root, p.Prefix, p.Name, p.Name)
		}
	}
}

// startsInside reports whether the text before a path makes the path the end of a longer one. A dash does not:
// systemd has paths such as -/etc/file.
func startsInside(before string) bool {
	return before != "" && before[len(before)-1] != '-' && inName(before[len(before)-1])
}

// continues reports whether a name continues, as in /srv/service-files.
func continues(rest string) bool { return rest != "" && inName(rest[0]) }

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-%~", c) >= 0
}

// within reports whether a path that starts a text is the prefix, or below it.
func within(prefix, text string) bool {
	rest, is := strings.CutPrefix(text, prefix)
	return is && !continues(rest)
}

// component returns the first element of a path that begins with a slash, and the rest.
func component(rest string) (name, after string) {
	if !strings.HasPrefix(rest, "/") {
		return "", rest
	}
	end := 1
	for end < len(rest) && inName(rest[end]) {
		end++
	}
	return rest[1:end], rest[end:]
}
