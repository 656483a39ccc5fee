package releases

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Moved is the error for a release that was made from what a channel no longer names.
type Moved struct{ Ref artifact.Ref }

func (e *Moved) Error() string { return fmt.Sprintf("%s names another release than before", e.Ref) }

// Hint says how to go on.
func (e *Moved) Hint() string {
	return "run the command again: it then begins with what is published now"
}

// moved refuses a release that was made from what the channel no longer names.
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
