package pkgrepo

import (
	"strings"
)

// parseDeb822 returns the entries of a file in deb822 format. The file consists of paragraphs, such as
//
//	Types: deb deb-src
//	URIs: http://deb.debian.org/debian
//	Suites: stable stable-updates
//	Components: main
//	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
func parseDeb822(text string) []entry {
	var entries []entry
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		entries = append(entries, expand822(fields822(paragraph))...)
	}
	return entries
}

// fields822 parses the fields of a paragraph. Lines that start with a space continue the previous one.
func fields822(paragraph string) map[string]string {
	fields := map[string]string{}
	last := ""
	for line := range strings.SplitSeq(paragraph, "\n") {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + strings.TrimSpace(line)
		default:
			name, v, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(v)
		}
	}
	return fields
}

// expand822 returns an entry for every combination of type, URI and suite in a paragraph.
func expand822(fields map[string]string) []entry {
	var entries []entry
	for _, kind := range strings.Fields(fields["types"]) {
		for _, uri := range strings.Fields(fields["uris"]) {
			for _, suite := range strings.Fields(fields["suites"]) {
				e := entry{kind: kind, uri: uri, suite: suite, comps: strings.Fields(fields["components"])}
				e.disabled = strings.EqualFold(fields["enabled"], "no") || strings.EqualFold(fields["enabled"], "false")
				e.setOption("arch", strings.Join(strings.Fields(fields["architectures"]), ","))
				// A key embedded in the file has no path to compare.
				if key := fields["signed-by"]; !strings.Contains(key, "\n") {
					e.setOption("signed-by", key)
				}
				entries = append(entries, e)
			}
		}
	}
	return entries
}
