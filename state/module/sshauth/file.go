package sshauth

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
)

// file is an authorized_keys file. A parsed file is shared by many states and must not be changed.
type file struct {
	lines []string
	keys  []sshkey.Key     // of each line; empty if the line has no key
	at    map[string][]int // indexes of the lines with a key
}

func parseFile(text string) *file {
	f := &file{at: map[string][]int{}}
	if text == "" {
		return f
	}
	f.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	f.keys = make([]sshkey.Key, len(f.lines))
	for i, line := range f.lines {
		k, ok := sshkey.Parse(line)
		if !ok || k.Valid() != nil {
			continue
		}
		f.keys[i] = k
		f.at[k.Text] = append(f.at[k.Text], i)
	}
	return f
}

// The results for a key, in Salt's words.
const (
	added   = "New"
	updated = "Updated"
)

// differs returns the result of setting a key: added, updated, or "" if the file has it unchanged. It compares
// all lines of the key, since sshd uses the first and another one may allow more.
func (f *file) differs(k sshkey.Key) string {
	lines, ok := f.at[k.Text]
	if !ok {
		return added
	}
	for _, i := range lines {
		if f.keys[i] != k {
			return updated
		}
	}
	return ""
}

// with returns the text of the file with the keys in put at their former lines or at the end, and without those
// in gone.
func (f *file) with(put []sshkey.Key, gone map[string]bool) string {
	wanted := map[string]sshkey.Key{}
	for _, k := range put {
		wanted[k.Text] = k
	}
	var b strings.Builder
	line := func(text string) { b.WriteString(text); b.WriteByte('\n') }
	for i, text := range f.lines {
		k, replaced := wanted[f.keys[i].Text]
		switch {
		case gone[f.keys[i].Text]:
		case !replaced:
			line(text)
		case f.at[k.Text][0] == i: // other lines of the same key are dropped
			line(k.String())
		}
	}
	for _, k := range put {
		if _, there := f.at[k.Text]; !there && wanted[k.Text] == k {
			line(k.String())
			delete(wanted, k.Text)
		}
	}
	return b.String()
}
