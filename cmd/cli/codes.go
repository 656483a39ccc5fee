package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// topicNamed returns the topic whose code is the only argument.
func topicNamed(args []string) (diag.Topic, bool) {
	if len(args) != 1 {
		return 0, false
	}
	return diag.TopicOf(strings.Trim(args[0], "[]"))
}

// explain prints what a code means, what to do first, and where to read more.
func explain(w io.Writer, t diag.Topic) error {
	_, err := fmt.Fprintf(w, "%s: %s\n  first: %s\n  more:  docs/troubleshooting.md#%s\n", t, t.Title(), t.Cure(),
		strings.ToLower(t.String()))
	return err
}
