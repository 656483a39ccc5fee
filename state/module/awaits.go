package module

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Awaits is the Diff of a state whose program, account or server is not there yet: an earlier state
// of the same run may bring it, and a dry run cannot know. Apply tells why it is still missing.
func Awaits(what, would string) Diff {
	return Diff{Unknown: true, Planned: value.NewMap(), Comment: fmt.Sprintf("%s is not there; if an earlier state brings it, would %s", what, would)}
}
