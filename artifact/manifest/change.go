package manifest

import (
	"strings"
	"time"
)

// Change is a difference between a name in a tree and the list.
type Change struct {
	Name     string    `json:"name"`
	What     string    `json:"what"`              // the difference, in words
	Owner    string    `json:"owner,omitempty"`   // numeric ID of the present owner
	Modified time.Time `json:"modified,omitzero"` // modification time of the file
	// Changed is the change time (ctime), which only the kernel sets; of a missing name, that of its directory.
	Changed time.Time `json:"changed,omitzero"`
	By      string    `json:"by,omitempty"`      // who changed it, if known
	Code    bool      `json:"code,omitempty"`    // the agent reads or runs it as root
	Foreign bool      `json:"foreign,omitempty"` // it is unchanged, but a user can change it
}

const (
	wasAdded = "was added"
	hasMode  = "has mode "
)

// Damages reports whether content was lost or replaced, or code was added. Other added names, other modes and other
// owners leave all unpacked content in place.
func (c Change) Damages() bool {
	if c.What == wasAdded {
		return c.Code
	}
	return !c.Foreign && !c.OnlyMode()
}

// OnlyMode reports whether only the mode of a name differs.
func (c Change) OnlyMode() bool {
	return strings.HasPrefix(c.What, hasMode) && !strings.Contains(c.What, " and ")
}
