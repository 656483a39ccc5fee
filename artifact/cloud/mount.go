package cloud

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Mount is a directory of a node, such as a working tree, that a guest of a developer environment sees.
type Mount struct {
	Source string // on the node
	Target string // in the guest
	Write  bool
	UID    int // owner of Source, as which the guest's root acts there; 0 for root's, which no guest writes
	GID    int // the primary group of that owner
}

// String returns the mount as it is written in the file.
func (m Mount) String() string {
	mode := "ro"
	if m.Write {
		mode = "rw"
	}
	return fmt.Sprintf("%s:%s:%s:%d:%d", m.Source, m.Target, mode, m.UID, m.GID)
}

// mountFields is the number of fields of a mount in the file.
const mountFields = 5

// ParseMount parses a mount as it is written in the file.
func ParseMount(text string) (Mount, error) {
	f := strings.Split(text, ":")
	if len(f) != mountFields {
		return Mount{}, notAMount(text)
	}
	uid, errUID := strconv.Atoi(f[3])
	gid, errGID := strconv.Atoi(f[4])
	m := Mount{Source: f[0], Target: f[1], Write: f[2] == "rw", UID: uid, GID: gid}
	if errUID != nil || errGID != nil || m.String() != text || m.Check() != nil {
		return Mount{}, notAMount(text)
	}
	return m, nil
}

func notAMount(text string) error {
	return diag.Cloud.Hint(fmt.Errorf("%q is not a mount", clipped(text)),
		"corpus dev up writes SOURCE:TARGET:ro or rw:UID:GID")
}

// mostID is the largest user ID that owns a mounted directory. Larger ones are those of guests.
const mostID = 1<<19 - 1

// Check returns an error for paths that are not allowed and for a directory of root's that a guest would write.
func (m Mount) Check() error {
	for _, p := range []string{m.Source, m.Target} {
		if err := CheckPath(p); err != nil {
			return err
		}
		if path.Clean(p) != p {
			return diag.Cloud.Hint(fmt.Errorf("%q is not the shortest form of a path", clipped(p)), "write it without dots")
		}
	}
	return m.checkRights()
}

// checkRights returns an error for a place that belongs to the guest, and for users who could become root by it.
func (m Mount) checkRights() error {
	first, _, _ := strings.Cut(m.Target[1:], "/")
	switch {
	case first == "proc" || first == "sys" || first == "dev" || first == "run":
		return diag.Cloud.Hint(fmt.Errorf("a guest has its own /%s", first), "mount it elsewhere, such as at /srv/NAME")
	case m.UID < 0 || m.UID > mostID || m.GID < 0 || m.GID > mostID:
		return diag.Cloud.Hint(fmt.Errorf("%d:%d are not the IDs of a user", m.UID, m.GID),
			"mount a directory of an ordinary user")
	case m.UID != 0 && m.GID == 0:
		return diag.Cloud.Hint(fmt.Errorf("the primary group of the user %d is that of root", m.UID),
			"give the user a group of its own, or mount a directory of another user")
	case m.UID == 0 && m.Write:
		return diag.Cloud.Hint(fmt.Errorf("%s is root's: a guest that writes there could become root on its node", m.Source),
			"give it to an ordinary user (chown -R USER), or mount it read-only")
	}
	return nil
}

// CheckMount returns an error if the text is not a mount of a guest.
func CheckMount(text string) error {
	_, err := ParseMount(text)
	return err
}

// mounts reports mounts of a guest that is not of a developer environment, and two mounts at one place.
func (k *checking) mounts(path string, g Guest) {
	if len(g.Mounts) == 0 {
		return
	}
	if g.Env != modeDev || k.cloud.Nodes[g.Node].Mode != modeDev {
		k.add(path+".mounts", "only guests of dev on nodes of dev have mounts: remove them",
			"a guest of %s on a node of %s cannot have the directories of its node", g.Env, k.cloud.Nodes[g.Node].Mode)
	}
	for _, text := range g.Mounts {
		if m, err := ParseMount(text); err == nil {
			k.once(path+".mounts", "the place in "+path, m.Target)
		}
	}
}
