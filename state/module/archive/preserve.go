package archive

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// An archive that is not signed does not determine which programs run as root, who owns its files and who may change
// them. Unless the state allows it (preserve, or -p in options), setuid and setgid bits and the write permission of all
// users are removed, and files belong to root unless the state sets an owner or group.

// rights holds the attributes of an entry that extraction leaves out.
type rights struct{ raised, open, owner bool }

// tamed removes these rights from an entry and returns those that it had.
func (e *entry) tamed(x *extracted) (left rights) {
	const raises = fs.ModeSetuid | fs.ModeSetgid
	if e.kind != symlink && e.kind != hardlink {
		left = rights{raised: e.mode&raises != 0, open: e.mode&0o002 != 0 && e.mode&fs.ModeSticky == 0}
		e.mode &^= raises
		if left.open {
			e.mode &^= 0o002
		}
	}
	if e.uid > 0 && x.User == "" || e.gid > 0 && x.Group == "" || e.user != "" && e.user != "root" && x.User == "" {
		left.owner = true
	}
	if e.native {
		e.uid, e.gid, e.user, e.group = 0, 0, "", ""
	}
	return left
}

// leftOut returns a text about the rights that extraction leaves out, "" for none.
func (x *extracted) leftOut(h *host.Host) string {
	var raised, open, owners []string
	for _, e := range x.contents {
		if e.left.raised {
			raised = append(raised, e.name)
		}
		if e.left.open {
			open = append(open, e.name)
		}
		if e.left.owner && h.Files.CanChown() {
			owners = append(owners, e.name)
		}
	}
	var parts []string
	for _, p := range []struct {
		what  string
		names []string
	}{{"setuid and setgid bits", raised}, {"the permission of all users to write", open}, {"the owner", owners}} {
		if len(p.names) > 0 {
			parts = append(parts, p.what+" of "+some(p.names))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; without preserve: True it leaves out " + strings.Join(parts, ", ")
}

// some returns a text with the first three names and the number of the others.
func some(names []string) string {
	const most = 3
	text := ""
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			text += " "
		}
		text += shown(name)
	}
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
