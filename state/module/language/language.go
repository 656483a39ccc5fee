// Package language holds states about what the package managers of languages install: pip and
// virtualenv, npm, gem, pecl.
//
// Each asks its package manager what is there, once per state, and calls it only where something is
// missing. Whether a repository has something newer takes a look at the network, which only a state
// that asks for it takes.
package language

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources gives files of the state tree.
type Sources interface {
	Source(ctx context.Context, url, env string) ([]byte, error)
}

// Tables are the functions of these states, by state.
func Tables(sources Sources) module.Registry {
	return module.Registry{
		"pip": {
			"installed": func() module.Resource { return &pipInstalled{pip: pip{sources: sources}} },
			"removed":   func() module.Resource { return &pipRemoved{pip: pip{sources: sources}} },
			"uptodate":  func() module.Resource { return &pipUptodate{pip: pip{sources: sources}} },
		},
		"virtualenv": {"managed": func() module.Resource { return &virtualenv{sources: sources} }},
		"npm": {
			"installed": func() module.Resource { return &npmInstalled{} },
			"removed":   func() module.Resource { return &npmRemoved{} },
			"bootstrap": func() module.Resource { return &npmBootstrap{Silent: true} },
		},
		"gem": {
			"installed": func() module.Resource { return &gemInstalled{} },
			"removed":   func() module.Resource { return &gemRemoved{} },
		},
		"pecl": {
			"installed": func() module.Resource { return &peclInstalled{PreferredState: "stable"} },
			"removed":   func() module.Resource { return &peclRemoved{} },
		},
	}
}

// awaits is what has to be there first and is not: the program, or the user it runs as; "" for
// nothing.
func awaits(h *host.Host, p host.Program) (string, error) {
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

// absent is the failure of something that should have been there first.
func absent(p host.Program, what string) error {
	if what == p.Name {
		return p.Missing()
	}
	return diag.WithHint(fmt.Errorf("%s is not there", what), "require the state that makes it")
}

// done is the report of changes that were foreseen.
func done(d module.Diff, format string, args ...any) module.Report {
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf(format, args...)}
}

// names reads names as a list, or as a list of mappings from a name to a version.
func names(v any) []string {
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

// words are the items of an argument that is a list, or one text with commas.
func words(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		return names(v)
	}
	var out []string
	for part := range strings.SplitSeq(value.Str(v), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
