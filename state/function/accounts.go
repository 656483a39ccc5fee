package function

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// UserName returns the name of the user with a number, or the number if there is no such user.
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

// Accounts returns a list with the result of info for each account in a file, in the order of the file.
func Accounts(h *host.Host, file string, info func(name string, _ any) (*value.Map, error)) (*value.List, error) {
	names, err := AccountNames(h, file)
	all := value.NewList()
	for _, name := range names {
		m, err := info(name, nil)
		if err != nil {
			return nil, err
		}
		all.Append(m)
	}
	return all, err
}
