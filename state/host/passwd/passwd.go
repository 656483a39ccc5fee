// Package passwd reads the files of accounts: /etc/passwd, /etc/group and nsswitch.conf.
package passwd

import (
	"iter"
	"strconv"
	"strings"
)

// User is a line of /etc/passwd.
type User struct {
	Name, Password     string
	UID, GID           int
	Gecos, Home, Shell string
}

// Group is a line of /etc/group.
type Group struct {
	Name, Password string
	GID            int
	Members        []string
}

// Records yields the fields of lines with the given number of fields. It skips comments, NIS markers and malformed
// lines.
func Records(text string, fields int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.SplitSeq(text, "\n") {
			f := strings.Split(line, ":")
			if len(f) != fields || f[0] == "" || strings.ContainsAny(f[0][:1], "+-#") {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

// Users returns the accounts of a file such as /etc/passwd.
func Users(text string) []User {
	var users []User
	for f := range Records(text, 7) {
		uid, errU := strconv.Atoi(f[2])
		gid, errG := strconv.Atoi(f[3])
		if errU == nil && errG == nil {
			users = append(users, User{Name: f[0], Password: f[1], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]})
		}
	}
	return users
}

// Groups returns the groups of a file such as /etc/group.
func Groups(text string) []Group {
	var groups []Group
	for f := range Records(text, 4) {
		gid, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		g := Group{Name: f[0], Password: f[1], GID: gid}
		if f[3] != "" {
			g.Members = strings.Split(f[3], ",")
		}
		groups = append(groups, g)
	}
	return groups
}

// OtherSources returns the databases for which nsswitch.conf names sources beside the files: an account may exist there
// without being in the files.
func OtherSources(text string) map[string]bool {
	more := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		database, sources, _ := strings.Cut(line, ":")
		for source := range strings.FieldsSeq(sources) {
			if source != "files" && source != "compat" && !strings.ContainsAny(source, "[]=") {
				more[strings.TrimSpace(database)] = true
			}
		}
	}
	return more
}
