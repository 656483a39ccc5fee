package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// leaving is the report as it may leave the host. What files hold that not everybody may read here stays
// here: whoever may read reports may not be whoever may read those.
func (r *run) leaving() *report.Report {
	out := *r.report
	out.Remembered = nil
	out.Steps = slices.Clone(out.Steps)
	for i, s := range out.Steps {
		out.Steps[i].Changes = r.public(s.Changes, s.Name)
	}
	return &out
}

// public is a step's changes without diffs of private files. Changes of several files name each.
func (r *run) public(changes *value.Map, file string) *value.Map {
	if changes == nil {
		return nil
	}
	out := value.NewMap()
	for _, name := range changes.Names() {
		switch v := changes.Value(name).(type) {
		case *value.Map:
			of := file
			if filepath.IsAbs(name) {
				of = name
			}
			out.Set(name, r.public(v, of))
		case string:
			if name == "diff" && strings.Contains(v, "\n") && !r.everybodys(file) {
				v = "not shown outside of the host, where not everybody may read " + file
			}
			out.Set(name, v)
		default:
			out.Set(name, v)
		}
	}
	return out
}

// everybodys reports whether everybody may read a file. Of one that is not there any more, or may be
// another one after a way back, that is not known.
func (r *run) everybodys(file string) bool {
	info, err := os.Stat(r.Layout.Path(file))
	return err == nil && filepath.IsAbs(file) && info.Mode().Perm()&0o004 != 0 && r.report.Undo == nil
}
