package host

import (
	"errors"
	"path"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// OfOwnLink marks an error that refuses a symbolic link which this run itself made or declares, so that the release is
// at fault, and not the host. It returns nil for any other error: also if the link on disk has another target, or if an
// unprivileged user can change what is at the target, since that user may have caused the refusal.
func (h *Host) OfOwnLink(err error) error {
	var refused *walk.UnsafeError
	t, ok := h.Files.(*tree)
	if !ok || !errors.As(err, &refused) || !t.ownLink(refused) {
		return nil
	}
	return &declaredError{err}
}

// ownLink reports whether the link that an error refuses is one of this run, and refused whatever users do.
func (t *tree) ownLink(refused *walk.UnsafeError) bool {
	if refused.Raised || refused.Program || refused.Tree || refused.Source {
		return false
	}
	info, err := t.Lstat(refused.Component)
	if err != nil || !info.IsLink() {
		return false
	}
	own := t.left.last(info.ID(), t.spellings(refused.Component)...)
	there, err := t.Readlink(refused.Component)
	if err != nil || own.target == "" || path.Clean(there) != path.Clean(own.target) {
		return false
	}
	if target := own.target; path.IsAbs(target) {
		return t.unchangeable(target)
	}
	dir := path.Dir(refused.Component)
	return t.unchangeable(dir) && t.unchangeable(path.Join(dir, own.target))
}

// unchangeable reports whether root alone can change what is at a path.
func (t *tree) unchangeable(p string) bool {
	party, _ := t.root.Changer(p, false)
	return party == ""
}
