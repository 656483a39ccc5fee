// Package alternatives implements alternatives.*: the program that a common name leads to, in the alternatives
// system of Debian and Red Hat.
package alternatives

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
)

type alternatives struct{ *function.Facts }

// Functions returns the functions of alternatives that templates may call.
func Functions(f *function.Facts) function.Table {
	a := alternatives{f}
	return function.Table{
		"alternatives.show_current": function.Of("name", a.current),
		"alternatives.check_installed": function.Of("name, path", func(name, path string) bool {
			return a.current(name) == path
		}),
		"alternatives.display":      function.Of("name", a.display),
		"alternatives.check_exists": function.Of("name, path", a.has),
		"alternatives.show_link":    function.Of("name", a.link),
	}
}

// current returns the path that an alternative points to, or False.
func (a alternatives) current(name string) any {
	target, err := a.Host.Files.Readlink("/etc/alternatives/" + name)
	if err != nil {
		a.WriteLog("error", "alternatives.show_current: there is no alternative "+name)
		return false
	}
	return target
}

func (a alternatives) tool(ctx context.Context, verb, name string) (host.Output, error) {
	program := "update-alternatives"
	if a.Grains.Value("os_family") == "RedHat" {
		program = "alternatives"
	}
	return a.Output(ctx, host.Line{Argv: []string{program, verb, name}})
}

// display returns the output of the alternatives program about an alternative, or its error message.
func (a alternatives) display(ctx context.Context, name string) (string, error) {
	out, err := a.tool(ctx, "--display", name)
	if out.Code > 0 && out.Stderr != "" {
		return out.Stderr, err
	}
	return out.Stdout, err
}

func (a alternatives) has(ctx context.Context, name, path string) (bool, error) {
	out, err := a.tool(ctx, "--display", name)
	if err != nil || out.Code > 0 {
		return false, err
	}
	for line := range strings.Lines(out.Stdout) {
		if strings.HasPrefix(line, path) {
			return true, nil
		}
	}
	return false, nil
}

// link returns the generic path of an alternative, such as /usr/bin/editor, or False.
func (a alternatives) link(ctx context.Context, name string) (any, error) {
	out, err := a.tool(ctx, "--query", name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out.Stdout) {
		if link, ok := strings.CutPrefix(line, "Link:"); ok {
			return strings.TrimSpace(link), nil
		}
	}
	return false, nil
}

// Acting returns the functions that choose the program of an alternative.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"alternatives.install": {Signature: "name, link, path, priority", State: "alternatives.install"},
		"alternatives.set":     {Signature: "name, path", State: "alternatives.set"},
		"alternatives.remove":  {Signature: "name, path", State: "alternatives.remove"},
		"alternatives.auto":    {Signature: "name", State: "alternatives.auto"},
	})
}
