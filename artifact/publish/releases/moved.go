package releases

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Moved is the error for a release that was made from an earlier release of a channel than the present one.
type Moved struct{ Ref artifact.Ref }

func (e *Moved) Error() string { return fmt.Sprintf("%s names another release than before", e.Ref) }

// Hint returns a hint to run the command again.
func (e *Moved) Hint() string {
	return diag.Busy.Coded("run the command again: it then begins with what is published now")
}

// moved returns an error if the release was made from another one than the channel names.
func (r Request) moved(role *trust.Role) error {
	if r.After == "" {
		return nil
	}
	channels, err := trust.Channels(role)
	if err == nil && channels[r.Channel].Digest != r.After {
		err = &Moved{Ref: artifact.Ref{Project: r.Project, Channel: r.Channel}}
	}
	return err
}
