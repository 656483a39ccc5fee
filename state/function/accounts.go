package function

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// userName is the name of a user's number, or the number.
func (f *Facts) userName(uid any) any {
	if n, err := whole(uid); err == nil {
		if u, ok, err := f.Host.Accounts.UserByID(n); ok && err == nil {
			return u.Name
		}
	}
	return uid
}

// accountNames lists the names in a file of accounts, in its order.
func accountNames(h *host.Host, file string) ([]string, error) {
	text, err := readText(h, file)
	if absent(err) {
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
