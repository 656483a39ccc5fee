package trust

import (
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Local is a tree that reached a host without the store: pushed by a user who may log in, or a linked working tree. No
// key signed it. It never becomes a Verified: no function that accepts a Verified accepts a Local, and its release is
// shown as unsigned everywhere.
type Local struct{ release artifact.Release }

// The ways in which a Local reaches a host.
const (
	ByPush     = "push"
	ByEditable = "editable"
)

// NewLocal returns the Local for a tree that arrived in one of these ways. The caller provides the digest of its
// content, which is not verified.
func NewLocal(project, version, how string, digest artifact.Digest) (Local, error) {
	if err := artifact.CheckProject(project); err != nil {
		return Local{}, err
	}
	if err := artifact.CheckVersion(version); err != nil {
		return Local{}, err
	}
	return Local{release: artifact.Release{Project: project, Version: version, Digest: digest, Local: how}}, nil
}

// Release returns the release of the tree on this host.
func (l Local) Release() artifact.Release { return l.release }
