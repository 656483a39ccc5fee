package site

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// TrustedUsers are the users to whom code may belong: root and the agent's own user, and below a --root the owner of
// that. Nil where owners mean nothing, since this process could not set them.
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

// OpenTrusting opens the host's tree so that only root, and the users whom the agent trusts, are privileged. It is
// nil where owners mean nothing to this process, or where the tree does not exist. The caller must close the first
// root.
func (s *Site) OpenTrusting() (opened, root *walk.Root, err error) {
	users := s.TrustedUsers()
	if users == nil {
		return nil, nil, nil
	}
	opened, err = s.OpenSafely()
	if found, err := walk.Found(err); !found {
		return nil, nil, err
	}
	return opened, opened.As(slices.Max(users)), nil // the one other than root, if there is one
}
