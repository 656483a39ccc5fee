package onhost

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// keys adds whether this host has the keys for the encrypted values of its pillar.
func (h *Host) keys() {
	machine, err := h.StateHost()
	if err != nil {
		h.found.Skip("keys", "the files of this host cannot be looked at: %v", err)
		return
	}
	const file = session.AgeKeyFile
	found, open, err := session.CheckAgeKeys(machine)
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		h.found.Skip("keys", "only root may read %s", file)
	case errors.Is(err, fs.ErrNotExist):
		h.withoutKeys(err)
	case err != nil:
		h.found.Error("keys", diag.Decrypt, err, "put the key back that the values were encrypted for")
	case open != nil:
		h.found.Warn("keys", diag.Decrypt, diag.HintOf(open), "%v", open)
	case found:
		h.found.OK("keys", "%s has keys, and its owner alone can read it", file)
	}
}

// withoutKeys adds what a host without a file of keys means: a failure if a file of the deployed pillar has values for
// one.
func (h *Host) withoutKeys(missing error) {
	encrypted, err := h.encrypted()
	switch {
	case err != nil:
		h.found.Skip("keys", "%v, and whether the pillar needs one is not known: %v", missing, err)
	case encrypted != "":
		h.found.Error("keys", diag.Decrypt, diag.KeepHint(
			errors.New(h.Layout.Inside(encrypted)+" has a value that is encrypted with age, and "+missing.Error()),
			diag.HintOf(missing)), "")
	default:
		h.found.OK("keys", "this host has no key for encrypted values, and no file of its pillar has one")
	}
}

// encrypted returns a file of the pillar of this host that has a value encrypted with age; "" if there is none.
func (h *Host) encrypted() (file string, err error) {
	runs := h.book.Runs()
	if runs == nil {
		return "", nil
	}
	roots := layout.PillarRoots(h.PairDirs(*runs))
	for i := range roots {
		roots[i] = h.Layout.Path(roots[i])
	}
	for _, root := range append(roots, h.LayoutOf(runs.Service.Project).Pillar()) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil && path == root && errors.Is(err, fs.ErrNotExist) {
				return fs.SkipDir
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := walk.ReadFile(path)
			if err != nil {
				return err
			}
			if bytes.Contains(data, []byte(armor.Header)) {
				file = path
				return fs.SkipAll
			}
			return nil
		})
		if err != nil || file != "" {
			return file, err
		}
	}
	return "", nil
}
