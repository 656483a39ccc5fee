package sshknownhosts

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// entry is a line of known_hosts: names and their key.
type entry struct {
	names string // separated by commas, or a single hashed name
	kind  string
	key   string
}

// file is a known_hosts file. A parsed file is shared by many states and must not be changed.
type file struct {
	lines   []string
	entries []entry // of each line; without key if the line is not an entry
}

func parseFile(text string) *file {
	f := &file{}
	if text == "" {
		return f
	}
	f.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	f.entries = make([]entry, len(f.lines))
	for i, line := range f.lines {
		f.entries[i], _ = parseEntry(line)
	}
	return f
}

// parseEntry parses a line. Lines with a marker, for certificate authorities and revoked keys, are not entries.
func parseEntry(line string) (entry, bool) {
	words := strings.Fields(line)
	if len(words) < 3 || strings.ContainsAny(words[0][:1], "#@") {
		return entry{}, false
	}
	if _, err := base64.StdEncoding.DecodeString(words[2]); err != nil {
		return entry{}, false
	}
	return entry{names: words[0], kind: words[1], key: words[2]}, true
}

// sshName returns the name of a host in known_hosts, which includes a port other than 22.
func sshName(name string, port int) string {
	if port == 0 || port == usualPort {
		return name
	}
	return fmt.Sprintf("[%s]:%d", name, port)
}

const usualPort = 22

// has reports whether the entry is for a host: by name or, if patterns is set, by a pattern.
func (e entry) has(name string, patterns bool) bool {
	if e.key == "" {
		return false
	}
	if strings.HasPrefix(e.names, hashMark) {
		return hashed(e.names, name)
	}
	found := false
	for item := range strings.SplitSeq(e.names, ",") {
		pattern, not := strings.CutPrefix(item, "!")
		switch {
		case strings.EqualFold(pattern, name) && !not:
			found = true
		case patterns && fits(strings.ToLower(pattern), strings.ToLower(name)):
			if not {
				return false
			}
			found = true
		}
	}
	return found
}

// fits reports whether a name matches a pattern with * and ?.
func fits(pattern, name string) bool {
	for ; pattern != ""; pattern, name = pattern[1:], name[1:] {
		if pattern[0] == '*' {
			for i := range len(name) + 1 {
				if fits(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if name == "" || pattern[0] != '?' && pattern[0] != name[0] {
			return false
		}
	}
	return name == ""
}

// hashMark is the prefix of a hashed name: |1|salt|hash.
const hashMark = "|1|"

func hashed(names, name string) bool {
	salt, _, _ := strings.Cut(strings.TrimPrefix(names, hashMark), "|")
	raw, err := base64.StdEncoding.DecodeString(salt)
	return err == nil && names == hashWith(raw, name)
}

func hashWith(salt []byte, name string) string {
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hashMark + base64.StdEncoding.EncodeToString(salt) + "|" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// hash returns the hash of a name, with a new salt.
func hash(name string) string {
	salt := make([]byte, sha1.Size)
	rand.Read(salt)
	return hashWith(salt, name)
}

// find returns the entries of a host.
func (f *file) find(name string, patterns bool) []entry {
	var found []entry
	for _, e := range f.entries {
		if e.has(name, patterns) {
			found = append(found, e)
		}
	}
	return found
}

// text returns the text of the file without the entries of a host for which drop returns true, and with the
// entries in add.
func (f *file) text(name string, drop func(entry) bool, add []entry) string {
	var b strings.Builder
	for i, line := range f.lines {
		if e := f.entries[i]; !e.has(name, false) || !drop(e) {
			b.WriteString(line + "\n")
		}
	}
	for _, e := range add {
		b.WriteString(e.names + " " + e.kind + " " + e.key + "\n")
	}
	return b.String()
}

// report returns entries in the form of Salt's changes.
func report(entries []entry, fingerprint func(string) string) any {
	if len(entries) == 0 {
		return nil
	}
	l := value.NewList()
	for _, e := range entries {
		l.Append(value.NewMap("hostname", e.names, "key", e.key, "enc", e.kind, "fingerprint", fingerprint(e.key)))
	}
	return l
}
