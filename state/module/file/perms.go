package file

import (
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// permBits are what a mode argument says something about.
const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// perms are an owner and a mode to be had.
type perms struct {
	owner
	mode module.Mode
}

// note puts into changes what is not as it should be, in Salt's order and words.
func (p *perms) note(info host.Info, changes *value.Map) {
	user, group := p.differs(info)
	if user {
		changes.Set("user", p.user)
	}
	if group {
		changes.Set("group", p.group)
	}
	if p.mode.Given && !info.IsLink() && info.Mode&permBits != p.mode.Bits {
		changes.Set("mode", module.ModeText(p.mode.Bits))
	}
}

// set gives a path the owner and mode, both of one file. A link is not followed; give its target instead.
func (p *perms) set(h *host.Host, file string, info host.Info) error {
	uid, gid := p.ids()
	chown := uid >= 0 && uid != info.UID || gid >= 0 && gid != info.GID
	chmod := p.mode.Given && !info.IsLink() && p.mode.Bits != info.Mode&permBits
	switch {
	case !chown && !chmod:
		return nil
	case p.mode.Given:
		return h.Files.Own(file, uid, gid, &p.mode.Bits)
	}
	return h.Files.Own(file, uid, gid, nil)
}

// birth is what a new file in a directory is before it is made anybody's: the agent's, and of the
// directory's group if that hands its group on.
func birth(h *host.Host, file string, mode fs.FileMode) host.Info {
	info := host.Info{Mode: mode}
	if dir, err := h.Files.Stat(path.Dir(file)); err == nil && dir.Mode&fs.ModeSetgid != 0 {
		info.GID = dir.GID
	}
	return info
}
