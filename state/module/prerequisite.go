package module

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Awaits returns the Diff of a state whose program, account or server does not exist yet, since an earlier
// state of the same run may create it. If none does, Apply returns the error. what names the prerequisite, such
// as "git" or "user ann".
func Awaits(what, would string) Diff {
	return Diff{
		Unknown: true, Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s does not exist; if an earlier state creates it, would %s", what, would),
		Missing: []error{lacking(what)},
	}
}

func lacking(what string) error {
	err := diag.Prerequisite.Hint(fmt.Errorf("%s does not exist", what), "require the state that makes it")
	kind, name, _ := strings.Cut(what, " ")
	switch {
	case kind == string(host.AUser) || kind == string(host.AGroup):
		return host.WithMissing(err, host.Thing(kind), name)
	case strings.HasPrefix(what, "/"):
		return host.WithMissing(err, host.ADirectory, what)
	case name == "":
		return host.WithMissing(err, host.ACommand, what)
	}
	return host.WithMissing(err, host.AnyThing)
}
