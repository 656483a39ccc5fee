package function

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// UserName returns the name of a user's number, or the number.
func (f *Facts) UserName(uid any) any {
	if n, err := Int(uid); err == nil {
		if u, ok, err := f.Host.Accounts.UserByID(n); ok && err == nil {
			return u.Name
		}
	}
	return uid
}

// AccountNames lists the names in a file of accounts, in its order.
func AccountNames(h *host.Host, file string) ([]string, error) {
	text, err := ReadText(h, file)
	if Absent(err) {
		return []string{}, nil
	}
	names := []string{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}
