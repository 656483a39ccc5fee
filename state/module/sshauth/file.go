package sshauth

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
)

// file is an authorized_keys file. Nobody changes one that was parsed, since many states share it.
type file struct {
	lines []string
	keys  []sshkey.Key     // of each line; without text where the line holds no key
	at    map[string][]int // lines by the text of their key
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

// The words Salt reports about a key.
const (
	added   = "New"
	updated = "Updated"
)

// differs tells what it takes to have a key in the file just as it is: added, updated, or "" for
// nothing. Every line of the key counts, as sshd takes the first and a second may allow more.
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

// with is the file's text with keys put into the places they had, or at the end, and others gone.
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
		case f.at[k.Text][0] == i: // further lines of the same key go
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
