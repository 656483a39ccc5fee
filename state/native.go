package state

import (
	"context"
	"errors"
)

// Native is this project's own engine.
type Native struct{}

// Compile renders, targets and compiles.
func (Native) Compile(context.Context, Request) (Program, error) { return nil, errors.New("not yet") }
