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

// Settings returns a connection setting from the configuration of the host or the pillar, such as mysql.user;
// "" if it is not set.
type Settings func(name string) string

// Work holds the changes that a state has to make on a server.
type Work struct {
	Statements []string
	Changes    *value.Map
	Would      string // for messages: "create the database x"
	Fine       string // the same if there is nothing to do
}

// ErrNoServer is wrapped by errors for a server that does not respond.
var ErrNoServer = errors.New("the server does not answer")

// Target is an object on a server, and the client that manages it.
type Target interface {
	// Awaits returns what must exist before the server can be queried, "" for nothing.
	Awaits(h *host.Host) (string, error)
	// Work compares the object with the declaration.
	Work(ctx context.Context, h *host.Host) (Work, error)
	// Run executes statements on the server.
	Run(ctx context.Context, h *host.Host, statements []string) error
	// Missing returns the error for a prerequisite that Awaits returned.
	Missing(what string) error
	// Gone reports whether the object should be absent, which it is without a server.
	Gone() bool
}

// Check implements Check for a target.
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
		return module.Awaits(what, map[bool]string{false: "see to it", true: "see that it is gone"}[t.Gone()]), nil
	}
	if len(w.Statements) == 0 {
		return module.Diff{Comment: w.Fine}, nil
	}
	return module.Diff{Changes: w.Changes, Comment: "would " + w.Would}, nil
}

// Apply implements Apply for a target. It compares again, since the server may have changed after Check.
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

// NoServer adds ErrNoServer and a hint to an error.
func NoServer(err error, server string) error {
	return diag.Server.Hint(fmt.Errorf("%w: %w", ErrNoServer, err),
		"start %s, in a service.running state that this one requires, or correct host and port", server)
}

// Hiding returns a function that redacts passwords in the output of a client.
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

// Quoted returns a text as an SQL literal, for servers where backslashes in literals have no special meaning.
func Quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Created returns the work for an object that does not exist.
func Created(what, name string, statements ...string) Work {
	return Work{
		Statements: statements, Changes: value.NewMap(name, "Present"), Would: fmt.Sprintf("create the %s %s", what, name),
	}
}
