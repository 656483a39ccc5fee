package file

import (
	"io/fs"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// permBits are the mode bits that a mode argument sets.
const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// perms holds a wanted owner and mode.
type perms struct {
	owner
	mode module.Mode
	kept bool // the mode is that of the source, and not in the state
}

// check returns an error if the mode of a state must not have its setuid or setgid bits at a path: see host.MayDeclare.
// An account that does not exist yet is reported when the state is applied.
func (p *perms) check(h *host.Host, file string) error {
	if !p.mode.Given || p.kept || p.problem != nil {
		return nil
	}
	uid, gid := p.ids()
	return h.MayDeclare(file, uid, gid, p.mode.Bits)
}

// mayDeclare is check for the owner and the mode of a state, before the state looks at the file.
func (o ownership) mayDeclare(h *host.Host, mode module.Mode, file string) (err error) {
	p := perms{mode: mode}
	if mode.Given && mode.Bits&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		p.owner, err = o.resolve(h)
	}
	if err != nil {
		return err
	}
	return p.check(h, file)
}

// declared returns the error of check for an error that refuses the mode of a state at a path, if it has become one of
// the declaration: the state made the directory. See also host.Declared.
func (p *perms) declared(h *host.Host, file string, err error) error {
	if err == nil || !p.mode.Given || p.kept {
		return err
	}
	if _, refused := host.Unsafe(err); refused {
		if own := p.check(h, file); own != nil {
			return own
		}
	}
	return h.Declared(file, err)
}

// note adds the differences between a file and the wanted owner and mode to changes, in Salt's order and words.
func (p *perms) note(info host.Info, changes *value.Map) {
	user, group := p.differs(info)
	if user {
		changes.Set("user", p.user)
	}
	if group {
		changes.Set("group", p.group)
	}
	switch left := info.Closed(); {
	case p.mode.Given && !info.IsLink() && info.Mode&permBits != p.mode.Bits:
		changes.Set("mode", module.ModeText(p.mode.Bits))
	case !p.mode.Given && user && p.uid == 0 && left != info.Mode:
		changes.Set("mode", module.ModeText(left&permBits))
		if !slices.Contains(p.notes, closed) {
			p.notes = append(p.notes, closed)
		}
	}
}

const closed = "what root takes over from a user keeps no permission of its group and of others to write (of a " +
	"directory: of others); set a mode to decide otherwise"

// set sets the owner and mode of a path. It does not follow a link; the caller passes the target.
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

// birth returns the metadata that a new file has before its owner is set: the directory's group if that has the
// setgid bit.
func birth(h *host.Host, file string, mode fs.FileMode) host.Info {
	info := host.Info{Mode: mode}
	if dir, err := h.Files.Stat(path.Dir(file)); err == nil && dir.Mode&fs.ModeSetgid != 0 {
		info.GID = dir.GID
	}
	return info
}
