package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Settings looks up what the host's configuration or its pillar says of connections, such as mysql.user; "" for
// nothing.
type Settings func(name string) string

// Work is what there is to do about one thing in a server.
type Work struct {
	Statements []string
	Changes    *value.Map
	Would      string // for people: create the database x
	Fine       string // the same where there is nothing to do
}

// ErrNoServer says that no server answers.
var ErrNoServer = errors.New("the server does not answer")

// Target is a thing in a server, and the client that it is reached by.
type Target interface {
	// Awaits is what has to be there before the server can be asked, "" for nothing.
	Awaits(h *host.Host) (string, error)
	// Work compares the thing with what was asked for.
	Work(ctx context.Context, h *host.Host) (Work, error)
	// Run has the server carry out statements.
	Run(ctx context.Context, h *host.Host, statements []string) error
	// Missing is the failure for what Awaits names.
	Missing(what string) error
	// Gone reports whether the thing is to be absent, as it is without a server.
	Gone() bool
}

// Check is the Check of a target.
func Check(ctx context.Context, h *host.Host, t Target) (module.Diff, error) {
	what, err := t.Awaits(h)
	if err != nil {
		return module.Diff{}, err
	}
	var w Work
	if what == "" {
		w, err = t.Work(ctx, h)
	}
	switch {
	case what == "" && errors.Is(err, ErrNoServer):
		what = "the server"
	case err != nil:
		return module.Diff{}, err
	}
	if what != "" {
		if t.Gone() {
			return module.Awaits(what, "see that it is gone"), nil
		}
		return module.Awaits(what, "see to it"), nil
	}
	if len(w.Statements) == 0 {
		return module.Diff{Comment: w.Fine}, nil
	}
	return module.Diff{Changes: w.Changes, Comment: "would " + w.Would}, nil
}

// Apply is the Apply of a target. It compares again, since the server may have changed after Check.
func Apply(ctx context.Context, h *host.Host, t Target) (module.Report, error) {
	if what, err := t.Awaits(h); err != nil || what != "" {
		if err != nil {
			return module.Report{}, err
		}
		return module.Report{}, t.Missing(what)
	}
	w, err := t.Work(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if len(w.Statements) == 0 {
		return module.Report{Changes: value.NewMap(), Comment: w.Fine}, nil
	}
	if err := t.Run(ctx, h, w.Statements); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: w.Changes, Comment: "did " + w.Would}, nil
}

// NoServer makes an error say how to get a server.
func NoServer(err error, server string) error {
	return diag.WithHint(fmt.Errorf("%w: %w", ErrNoServer, err),
		"start %s, in a service.running state that this one requires, or correct host and port", server)
}

// Hiding returns a function that takes passwords out of what a client prints.
func Hiding(passwords ...string) func(string) string {
	return func(text string) string {
		for _, p := range passwords {
			if len(p) > 2 {
				text = strings.ReplaceAll(text, p, "<secret>")
			}
		}
		return text
	}
}

// Quoted is a text as a literal of SQL in which backslashes have no meaning of their own.
func Quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Created is the work for a thing that does not exist yet.
func Created(what, name string, statements ...string) Work {
	return Work{
		Statements: statements, Changes: value.NewMap(name, "Present"), Would: fmt.Sprintf("create the %s %s", what, name),
	}
}
