package onhost

import (
	"io/fs"
	"os"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// control adds the files and programs that root reads or runs and that another user could replace. Runs make the same
// checks, and refuse such a host.
func (h *Host) control() {
	wrong := false
	for _, err := range h.CheckControl() {
		h.found.Error("control", diag.Exposed, err, "give what the message names back to root")
		wrong = true
	}
	if info, err := os.Lstat(h.LedgerPath()); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		path := h.LedgerPath()
		h.found.Fail("control", diag.Path, "look at where it leads (readlink "+path+"), then: cp --remove-destination "+
			"\"$(readlink -f "+path+")\" "+path,
			"%s is a symbolic link: the agent keeps a regular file there", h.Layout.Inside(path))
		wrong = true
	}
	if !wrong {
		h.found.OK("control", "root alone can change what the agent reads and runs")
	}
}
