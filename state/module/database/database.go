// Package database holds states about what is in database servers: PostgreSQL, MySQL and MariaDB,
// MongoDB.
//
// They work through the servers' own clients. Statements go in by standard input and passwords by
// the environment, so that neither stands on a command line, and what a client says of a failure is
// told without them. A server that does not answer yet may be one that an earlier state of the run
// starts: a dry run says that it does not know, and a run fails.
package database

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

// Settings looks up what the host's configuration or its pillar says of connections, such as
// mysql.user; "" for nothing.
type Settings func(name string) string

// Tables are the functions of these states, by state.
func Tables(settings Settings) module.Registry {
	all := postgresTables(settings)
	for state, table := range mysqlTables(settings) {
		all[state] = table
	}
	all["mongodb_user"] = mongoTable()
	return all
}

// work is what there is to do about one thing in a server.
type work struct {
	statements []string
	changes    *value.Map
	would      string // for people: create the database x
	fine       string // the same where there is nothing to do
}

// errNoServer says that no server answers.
var errNoServer = errors.New("the server does not answer")

// target is a thing in a server, and the client that it is reached by.
type target interface {
	// awaits is what has to be there before the server can be asked, "" for nothing.
	awaits(h *host.Host) (string, error)
	// work compares the thing with what was asked for.
	work(ctx context.Context, h *host.Host) (work, error)
	run(ctx context.Context, h *host.Host, statements []string) error
	// missing is the failure of what awaits names.
	missing(what string) error
	// gone says that the thing is to be gone: where there is no server, it is.
	gone() bool
}

// check is the Check of a target.
func check(ctx context.Context, h *host.Host, t target) (module.Diff, error) {
	what, err := t.awaits(h)
	if err != nil {
		return module.Diff{}, err
	}
	var w work
	if what == "" {
		w, err = t.work(ctx, h)
	}
	switch {
	case what == "" && errors.Is(err, errNoServer):
		what = "the server"
	case err != nil:
		return module.Diff{}, err
	}
	if what != "" {
		if t.gone() {
			return module.Awaits(what, "see that it is gone"), nil
		}
		return module.Awaits(what, "see to it"), nil
	}
	if len(w.statements) == 0 {
		return module.Diff{Comment: w.fine}, nil
	}
	return module.Diff{Changes: w.changes, Comment: "would " + w.would}, nil
}

// apply is the Apply of a target. It looks again: what it is about may have changed since.
func apply(ctx context.Context, h *host.Host, t target) (module.Report, error) {
	if what, err := t.awaits(h); err != nil || what != "" {
		if err != nil {
			return module.Report{}, err
		}
		return module.Report{}, t.missing(what)
	}
	w, err := t.work(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if len(w.statements) == 0 {
		return module.Report{Changes: value.NewMap(), Comment: w.fine}, nil
	}
	if err := t.run(ctx, h, w.statements); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: w.changes, Comment: "did " + w.would}, nil
}

// noServer makes an error say how to get a server.
func noServer(err error, server string) error {
	return diag.WithHint(fmt.Errorf("%w: %w", errNoServer, err), "start %s, in a service.running state that this one requires, or correct host and port", server)
}

// missingProgram is the failure of a client or a user that should have been there first.
func missingProgram(p host.Program, what string) error {
	if what == p.Name {
		return p.Missing()
	}
	return diag.WithHint(fmt.Errorf("%s is not there", what), "require the state that makes it")
}

// hiding takes passwords out of what a client says.
func hiding(passwords ...string) func(string) string {
	return func(text string) string {
		for _, p := range passwords {
			if len(p) > 2 {
				text = strings.ReplaceAll(text, p, "<secret>")
			}
		}
		return text
	}
}

// quoted is a text as both kinds of SQL take it where backslashes are nothing special.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// list reads an argument that is a list, or one text with commas.
func list(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		out := make([]string, 0, v.Len())
		for _, item := range v.Items {
			out = append(out, value.Str(item))
		}
		return out
	}
	var out []string
	for part := range strings.SplitSeq(value.Str(v), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
