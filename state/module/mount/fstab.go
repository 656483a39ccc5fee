package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// entry is a line of /etc/fstab, in which blanks are written as \040.
type entry struct{ device, name, fstype, opts, dump, pass string }

// parseEntry parses a line. It returns false for a line that is not an entry, such as a comment.
func parseEntry(line string) (entry, bool) {
	f := strings.Fields(line)
	if strings.HasPrefix(line, "#") || len(f) < 4 || len(f) > 6 {
		return entry{}, false
	}
	f = append(f, "0", "0")
	return entry{f[0], f[1], f[2], f[3], f[4], f[5]}, true
}

func (e entry) String() string {
	return fmt.Sprintf("%s\t\t%s\t%s\t%s\t%s %s\n", e.device, e.name, e.fstype, e.opts, e.dump, e.pass)
}

// same reports whether two entries are equal, disregarding the order of options.
func (e entry) same(other entry) bool {
	a, b := strings.Split(e.opts, ","), strings.Split(other.opts, ",")
	slices.Sort(a)
	slices.Sort(b)
	e.opts, other.opts = "", ""
	return e == other && slices.Equal(a, b)
}

// field returns a field of an entry by its name in match_on.
func (e entry) field(key string) (string, bool) {
	v, ok := map[string]string{"device": e.device, "name": e.name, "fstype": e.fstype, "opts": e.opts, "dump": e.dump,
		"pass_num": e.pass}[key]
	return v, ok
}

// escaped escapes blanks as described in fstab(5).
func escaped(text string) string {
	return strings.NewReplacer(`\ `, `\040`, " ", `\040`, "\t", `\011`).Replace(text)
}

// table is /etc/fstab or another file in its format.
type table struct {
	path  string
	lines []string
}

// openTable reads the file. A missing file counts as empty.
func openTable(h *host.Host, path string) (table, error) {
	data, err := h.Files.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return table{}, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return table{path, lines}, nil
}

// with returns the text of the file with the matching entries replaced by e, or with e appended if none matches. With
// keep, matching entries stay as they are. what is "present", "new" or "change".
func (t table) with(e entry, matches func(old entry) bool, keep bool) (text, what string) {
	var b strings.Builder
	for _, l := range t.lines {
		old, ok := parseEntry(l)
		if !ok || !matches(old) {
			b.WriteString(l)
			continue
		}
		if what == "" {
			what = "present"
		}
		if !old.same(e) && !keep {
			l, what = e.String(), "change"
		}
		b.WriteString(l)
	}
	if what == "" {
		if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteString("\n")
		}
		b.WriteString(e.String())
		what = "new"
	}
	return b.String(), what
}

// without returns the text of the file without the matching entries, and whether there are any.
func (t table) without(matches func(old entry) bool) (text string, found bool) {
	var b strings.Builder
	for _, l := range t.lines {
		if old, ok := parseEntry(l); ok && matches(old) {
			found = true
			continue
		}
		b.WriteString(l)
	}
	return b.String(), found
}

// find returns the first matching entry.
func (t table) find(matches func(old entry) bool) (entry, bool) {
	for _, l := range t.lines {
		if e, ok := parseEntry(l); ok && matches(e) {
			return e, true
		}
	}
	return entry{}, false
}

// criteria returns a function that matches entries for the same purpose as e: by the fields in match_on or, by
// default, by the mount point for file systems without a device of their own and by the device for others.
func criteria(e entry, matchOn []string) (func(old entry) bool, error) {
	keys := matchOn
	if len(keys) == 0 || len(keys) == 1 && keys[0] == "auto" {
		keys = []string{usualKey(e.fstype)}
	}
	for _, key := range keys {
		if _, ok := e.field(key); !ok {
			return nil,
				fmt.Errorf("match_on has %q, which is not part of an entry: device, name, fstype, opts, dump and pass_num are", key)
		}
	}
	return func(old entry) bool {
		for _, key := range keys {
			want, _ := e.field(key)
			if got, _ := old.field(key); got != want {
				return false
			}
		}
		return true
	}, nil
}

// usualKey returns the field that identifies an entry of a file system type: the mount point if several entries can
// have the same device, and otherwise the device.
func usualKey(fstype string) string {
	if slices.Contains([]string{"none", "tmpfs", "sysfs", "proc", "fusectl", "debugfs", "securityfs", "devtmpfs",
		"cgroup", "nfs", "nfs4", "glusterfs", "btrfs"}, fstype) {
		return "name"
	}
	return "device"
}
