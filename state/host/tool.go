package host

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Tool is a program of the system, run to ask something or to change what is no file.
type Tool struct {
	Argv    []string
	Stdin   string
	Env     []string      // NAME=value, on top of a plain PATH and locale
	Limit   time.Duration // 10 minutes by default
	Changes Subject       // what it replaces, which is recorded first; zero for a tool that only reads
	Package string        // that has the tool, for who does not have it
	Plain   []string      // words of Argv that the tool does not follow as paths, though they begin with a slash
}

// paths are the paths that a tool which changes something is given by their names.
func (t Tool) paths() (all []string) {
	if t.Changes == (Subject{}) {
		return nil
	}
	for _, word := range t.Argv[1:] {
		if path.IsAbs(word) && !slices.Contains(t.Plain, word) {
			all = append(all, word)
		}
	}
	return all
}

// Tool runs a program of the system to its end and gives what it printed. A tool that changes something gets no absolute
// path that another user can make mean something else: see Command.Paths. A code other than 0 is a
// *ToolError with what the program said; a program that is not there is an error with a hint.
func (h *Host) Tool(ctx context.Context, t Tool) (string, error) {
	name := path.Base(t.Argv[0])
	if err := h.Commands.Allowed(name); err != nil {
		return "", err
	}
	program, ok := h.Which(name)
	if !ok {
		return "", diag.WithHint(fmt.Errorf("%s is not installed", name), "install %s in a pkg.installed state that this one requires", t.brings())
	}
	if err := replacing(h.recorder, t.Changes); err != nil {
		return "", err
	}
	c := Command{Argv: append([]string{program}, t.Argv[1:]...), Env: append(toolEnvironment(), t.Env...), Stdin: t.Stdin, Limit: t.limit(), Quiet: t.Changes == Subject{}, Named: true, Paths: t.paths()}
	out, err := h.Commands.Run(ctx, c)
	switch {
	case err != nil:
		return out.Stdout, err
	case out.TimedOut:
		return out.Stdout, fmt.Errorf("%s did not end in %s", name, c.Limit)
	case out.Code != 0:
		text := firstLines(out.Stderr)
		if text == "" {
			text = firstLines(out.Stdout)
		}
		return out.Stdout, &ToolError{Tool: name, Code: out.Code, Text: text}
	}
	return out.Stdout, nil
}

func (t Tool) limit() time.Duration {
	if t.Limit > 0 {
		return t.Limit
	}
	return toolLimit
}

func (t Tool) brings() string {
	if t.Package != "" {
		return t.Package
	}
	return "the package that has it"
}

// Failed words why something could not be done by a tool: what that was, and what the tool says of it.
// The hint is for an error that has none of its own. It is nil for a nil error.
func Failed(err error, what, hint string) error {
	if err == nil {
		return nil
	}
	worded := fmt.Errorf("%s: %w", what, err)
	if diag.HintOf(err) != "" {
		return worded
	}
	return diag.WithHint(worded, "%s", hint)
}
