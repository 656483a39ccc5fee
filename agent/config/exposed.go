package config

import (
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// private returns the problems of a file that other users can access, or whose directory they can write to.
func private(file string, others os.FileMode, what, mode string) (problems diag.List) {
	info, err := os.Stat(file)
	if os.IsNotExist(err) && what == "the configuration" {
		return nil
	}
	if err != nil {
		problems.Add(diag.Pos{File: file}, "%s cannot be read: %v", what, err)
		return problems
	}
	if got := info.Mode().Perm(); got&others != 0 {
		problems.Add(diag.Pos{File: file}, "%s has mode %#o: other users can read or write it", what,
			got).WithHint(diag.Exposed, "chmod "+mode+" "+file)
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		problems.Add(diag.Pos{File: file}, "the directory of %s cannot be read: %v", what, err)
		return problems
	}
	if dir.Mode().Perm()&0o022 != 0 && dir.Mode()&os.ModeSticky == 0 {
		problems.Add(diag.Pos{File: file}, "%s is in a directory that other users can write",
			what).WithHint(diag.Exposed, "chmod go-w "+filepath.Dir(file))
	}
	return problems
}
