package trust

import (
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Local is a tree that reached a host without the store: pushed by a user who may log in, or a working
// tree that is linked. No key signed it. It is never a Verified and cannot become one: no function that
// takes a Verified takes a Local, and its release is shown as unsigned everywhere.
type Local struct{ release artifact.Release }

// The ways in which a Local comes.
const (
	ByPush     = "push"
	ByEditable = "editable"
)

// NewLocal names a tree that came in one of these ways. The digest stands for its content, as the
// one who brought it says.
func NewLocal(project, version, how string, digest artifact.Digest) (Local, error) {
	if err := artifact.CheckProject(project); err != nil {
		return Local{}, err
	}
	if err := artifact.CheckVersion(version); err != nil {
		return Local{}, err
	}
	return Local{release: artifact.Release{Project: project, Version: version, Digest: digest, Local: how}}, nil
}

// Release is what a host calls it.
func (l Local) Release() artifact.Release { return l.release }
