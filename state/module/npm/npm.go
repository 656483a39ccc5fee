// Package npm implements npm.installed, npm.removed and npm.bootstrap, which manage packages of Node.js with
// the npm program.
package npm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Functions returns the functions of npm.
func Functions() module.Table {
	return module.Table{
		"installed": func() module.Resource { return &installed{} },
		"removed":   func() module.Resource { return &removed{} },
		"bootstrap": func() module.Resource { return &bootstrap{Silent: true} },
	}
}

// npm holds the arguments that the states have in common.
type npm struct {
	User string `sls:"user"`
	Dir  string `sls:"dir"` // "" for global packages
}

func (n *npm) program(env any) program.Program {
	var reads []string
	if n.Dir != "" {
		reads = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", "node_modules"}
	}
	return program.Program{Name: "npm", RunAs: n.User, Dir: n.Dir, Reads: reads, Remote: true, Hide: redact.URLs,
		Env: append([]string{"NO_UPDATE_NOTIFIER=1", "npm_config_fund=false", "npm_config_audit=false"},
			module.Environment(env)...)}
}

// list returns the installed versions by name.
func (n *npm) list(ctx context.Context, h *host.Host, env any) (map[string]string, error) {
	args := []string{"list", "--json", "--depth=0"}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	out, err := n.program(env).Ask(ctx, h, args...)
	if err != nil && !program.EndedWith(err, 1) { // the exit code if a dependency is missing
		return nil, err
	}
	return parseList(out)
}

// parseList parses the versions of packages from the output of npm list.
func parseList(out string) (map[string]string, error) {
	var tree struct {
		Dependencies map[string]struct {
			Version string
			Missing bool
		}
	}
	if err := json.Unmarshal([]byte(out), &tree); err != nil {
		return nil, fmt.Errorf("reading what npm list prints: %w", err)
	}
	found := map[string]string{}
	for name, d := range tree.Dependencies {
		if !d.Missing {
			found[name] = d.Version
		}
	}
	return found, nil
}

// split splits name@version. The @ of a scope is part of the name.
func split(text string) (name, version string) {
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}
