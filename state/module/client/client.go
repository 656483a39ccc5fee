// Package client holds the common code of states that use a client program: the package managers of programming
// languages (pip, npm, gem, pecl) and the clients of database servers (psql, mysql, mongosh).
//
// A missing program, account or server may be installed or started by an earlier state of the run, so a dry run
// reports unknown changes where a run fails. Secrets are passed to a client through its environment, its
// standard input or a file that only its user can read, never through its arguments. They are redacted in
// errors.
package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources reads files of the state tree.
type Sources interface {
	Source(ctx context.Context, url, env string) ([]byte, error)
}

// Awaits returns the missing prerequisite of a program: the program itself or the user as whom it runs; "" for none.
func Awaits(h *host.Host, p program.Program) (string, error) {
	if ok, err := p.Ready(h); err != nil || !ok {
		return p.Name, err
	}
	if p.RunAs == "" {
		return "", nil
	}
	if _, ok, err := h.Accounts.User(p.RunAs); err != nil || !ok {
		return "user " + p.RunAs, err
	}
	return "", nil
}

// Missing returns the error for a prerequisite that Awaits returned.
func Missing(p program.Program, what string) error {
	if what == p.Name {
		return p.Missing()
	}
	return diag.Prerequisite.Hint(fmt.Errorf("%s does not exist", what), "require the state that makes it")
}

// OrMissing returns err, or otherwise the error for a prerequisite that Awaits returned.
func OrMissing(err error, p program.Program, what string) error {
	if err != nil {
		return err
	}
	return Missing(p, what)
}

// Done returns the report for changes that Check predicted.
func Done(d module.Diff, format string, args ...any) module.Report {
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf(format, args...)}
}

// Packages parses a list of packages: names, or mappings of a name to a version.
func Packages(v any) []string {
	list, ok := v.(*value.List)
	if !ok {
		return nil
	}
	var out []string
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			out = append(out, value.Str(item))
			continue
		}
		for name, version := range m.All() {
			text := value.Str(name)
			if version != nil {
				text += value.Str(version)
			}
			out = append(out, text)
		}
	}
	return out
}

// List parses an argument that is a list or text separated by commas.
func List(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		return Packages(v)
	}
	var out []string
	for part := range strings.SplitSeq(value.Str(v), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
