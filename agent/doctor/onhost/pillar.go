package onhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// pillar adds whether a run can read the pillar that only this host has, and whether root alone can change it.
func (h *Host) pillar() {
	if h.id.Service == "" {
		h.found.Skip("pillar", "the service of this host is not known")
		return
	}
	dir := h.LayoutOf(h.id.Service).Pillar()
	there, err := false, h.CheckPillar(h.id.Service)
	if err == nil {
		there, err = readable(dir)
	}
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		h.found.Skip("pillar", "only root may read it")
	case err != nil:
		h.found.Error("pillar", diag.Pillar, err, "make it readable by root, or bring it back from a backup")
	case there:
		h.found.OK("pillar", "%s can be read", h.Layout.Inside(dir))
	default:
		h.found.OK("pillar", "this host has no pillar of its own for %s", h.id.Service)
	}
}

// readable reports whether a directory of pillar files, which root alone can change, exists, with an error if it or its
// init.sls cannot be read.
func readable(dir string) (there bool, err error) {
	_, err = os.ReadDir(dir)
	if there, err = walk.Found(err); err != nil || !there {
		return there, err
	}
	f, err := walk.OpenFile(filepath.Join(dir, "init.sls"))
	if found, err := walk.Found(err); err != nil || !found {
		return true, err
	}
	return true, f.Close()
}
