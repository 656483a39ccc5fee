package statetest

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Commands implements host.Commands with a function.
type Commands func(c host.Command) (host.Output, error)

// Allowed allows every command.
func (c Commands) Allowed(string) error { return nil }

// Run calls the function.
func (c Commands) Run(_ context.Context, command host.Command) (host.Output, error) {
	return c(command)
}
