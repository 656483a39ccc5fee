package host

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// lines reads a file of the accounts. A root without the file has no accounts.
func (a *accounts) lines(path string) (string, error) {
	data, err := a.files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return "", diag.WithHint(fmt.Errorf("reading accounts: %w", err), "run as root")
	case err != nil:
		return "", fmt.Errorf("reading accounts: %w", err)
	}
	return string(data), nil
}

// records yields the lines that have the given number of fields; comments, NIS markers and what
// somebody broke by hand are not accounts.
func records(text string, fields int) iter.Seq[[]string] {
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

func parsePasswd(text string) []User {
	var users []User
	for f := range records(text, 7) {
		uid, errU := strconv.Atoi(f[2])
		gid, errG := strconv.Atoi(f[3])
		if errU == nil && errG == nil {
			users = append(users, User{Name: f[0], Password: f[1], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]})
		}
	}
	return users
}

func parseGroup(text string) []Group {
	var groups []Group
	for f := range records(text, 4) {
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

func parseShadow(text string) []Shadow {
	var list []Shadow
	for f := range records(text, 9) {
		list = append(list, Shadow{
			Name: f[0], Hash: f[1], LastChange: days(f[2]), Min: days(f[3]), Max: days(f[4]), Warn: days(f[5]),
			Inactive: days(f[6]), Expire: days(f[7]),
		})
	}
	return list
}

// days reads a field of shadow; an empty one is -1.
func days(field string) int {
	n, err := strconv.Atoi(field)
	if err != nil {
		return -1
	}
	return n
}

func number(id int) string { return strconv.Itoa(id) }
