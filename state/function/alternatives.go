package function

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

type alternatives struct{ *Facts }

func alternativesTable(f *Facts) Table {
	a := alternatives{f}
	return Table{
		"alternatives.show_current":    Of("name", a.current),
		"alternatives.check_installed": Of("name, path", func(name, path string) bool { return a.current(name) == path }),
		"alternatives.display":         Of("name", a.display),
		"alternatives.check_exists":    Of("name, path", a.has),
		"alternatives.show_link":       Of("name", a.link),
	}
}

// current is what an alternative leads to, or False.
func (a alternatives) current(name string) any {
	target, err := a.Host.Files.Readlink("/etc/alternatives/" + name)
	if err != nil {
		a.log("error", "alternatives.show_current: there is no alternative "+name)
		return false
	}
	return target
}

func (a alternatives) tool(ctx context.Context, verb, name string) (host.Output, error) {
	program := "update-alternatives"
	if a.Grains.Value("os_family") == "RedHat" {
		program = "alternatives"
	}
	return a.ask(ctx, host.Line{Argv: []string{program, verb, name}})
}

// display is what the system's tool says of an alternative, or why it says nothing.
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

// link is the path that users of an alternative know, or False.
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

// alternativesActs choose what a name of a program leads to.
func alternativesActs(f *Facts) Table {
	return byState(f, map[string]deed{
		"alternatives.install": {signature: "name, link, path, priority", state: "alternatives.install"},
		"alternatives.set":     {signature: "name, path", state: "alternatives.set"},
		"alternatives.remove":  {signature: "name, path", state: "alternatives.remove"},
		"alternatives.auto":    {signature: "name", state: "alternatives.auto"},
	})
}
