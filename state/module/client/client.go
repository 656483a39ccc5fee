// Package client holds what state functions share that work through the client program of something else: the package
// managers of programming languages (pip, npm, gem, pecl) and the clients of database servers (psql, mysql, mongosh).
//
// A program, an account or a server that is missing may be one that an earlier state of the run installs or starts: a
// dry run says that it does not know, and a run fails. Secrets reach a client through its environment, its standard
// input or a file that its user alone can read, never through its arguments, and no error repeats them.
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

// Awaits is what a program lacks to run: the program itself, or the user it runs as; "" for nothing.
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

// Missing is the failure of a run for what Awaits names.
func Missing(p program.Program, what string) error {
	if what == p.Name {
		return p.Missing()
	}
	return diag.WithHint(fmt.Errorf("%s is not there", what), "require the state that makes it")
}

// OrMissing is the error of Awaits, or else the failure for what it names.
func OrMissing(err error, p program.Program, what string) error {
	if err != nil {
		return err
	}
	return Missing(p, what)
}

// Done is the report of changes that were foreseen.
func Done(d module.Diff, format string, args ...any) module.Report {
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf(format, args...)}
}

// Packages reads packages as a list of names, or of mappings from a name to a version.
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

// List reads an argument that is a list, or one text with commas.
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

// WithoutLogins takes users and passwords out of the URLs in a text.
func WithoutLogins(text string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			return out.String() + text
		}
		out.WriteString(text[:i+3])
		text = text[i+3:]
		end := strings.IndexAny(text, "/ \t\n'\"")
		if end < 0 {
			end = len(text)
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			text = text[at+1:]
		}
	}
}

// HasLogin reports whether there is a URL with a user or a password in a text.
func HasLogin(text string) bool { return WithoutLogins(text) != text }
