package site

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// TrustedUsers returns the users who may own code: root, which the agent runs as, and below a --root the owner of that
// directory. It returns nil if the agent does not run as root, since it could not set owners.
func (s *Site) TrustedUsers() []uint32 {
	if os.Geteuid() != 0 {
		return nil
	}
	users := []uint32{0}
	var st unix.Stat_t
	if s.Layout.Relocated() && unix.Stat(s.Layout.Root, &st) == nil {
		users = append(users, st.Uid)
	}
	return users
}

// OpenSafely opens the host's tree so that no link of another user is followed.
func (s *Site) OpenSafely() (*walk.Root, error) {
	return walk.Open(walk.Options{Dir: s.Layout.Root, Safe: true, Members: passwd.Members(s.Layout.Root)})
}

// OpenTrusting opens the host's tree so that only root, and the users whom the agent trusts, are privileged. root is
// nil if the agent does not run as root, or if the tree does not exist. The caller must close opened.
func (s *Site) OpenTrusting() (opened, root *walk.Root, err error) {
	users := s.TrustedUsers()
	if users == nil {
		return nil, nil, nil
	}
	opened, err = s.OpenSafely()
	if found, err := walk.Found(err); !found {
		return nil, nil, err
	}
	return opened, opened.As(slices.Max(users)), nil // the user other than root, if there is one
}
