package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

func (p *program) grainsCommand() *cobra.Command {
	return p.dataCommand("grains", "Show the grains of this host",
		func(ctx context.Context, a *agent.Agent) (*value.Map, []error, error) { return a.ShowGrains(ctx) })
}

func (p *program) pillarCommand() *cobra.Command {
	return p.dataCommand("pillar", "Show this host's pillar",
		func(ctx context.Context, a *agent.Agent) (*value.Map, []error, error) { return a.ShowPillar(ctx) })
}

// dataCommand returns a command that prints a mapping or one of its values. It prints the problems that left parts of
// the mapping out on standard error.
func (p *program) dataCommand(name, short string,
	get func(context.Context, *agent.Agent) (*value.Map, []error, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [KEY]",
		Short:   short,
		Long:    short + ". With KEY only its value is shown; a:b:0 selects a nested value.",
		Example: fmt.Sprintf("  corpus-agent %s\n  corpus-agent %s a:b", name, name),
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			all, missing, err := get(c.Context(), a)
			for _, m := range missing {
				printNotes(p.Err, []string{m.Error()})
			}
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return p.printValue(all)
			}
			v, ok := value.Lookup(all, args[0], ":")
			if !ok {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("there is no %q in the %s", args[0], name), "%s",
					meant(all, args[0])))
			}
			return p.printValue(v)
		},
	}
}

// meant returns a hint for a key that does not exist: a similar key in the mapping to which the existing part of
// the key leads.
func meant(all *value.Map, key string) string {
	above, last := "", key
	if i := strings.LastIndex(key, ":"); i >= 0 {
		if v, ok := value.Lookup(all, key[:i], ":"); !ok {
			return meant(all, key[:i])
		} else if below, ok := v.(*value.Map); ok {
			all, above, last = below, key[:i+1], key[i+1:]
		}
	}
	if best := diag.Nearest(last, all.Names()); best != "" {
		return fmt.Sprintf("did you mean %q?", above+best)
	}
	if whole := above + strings.ReplaceAll(last, ".", ":"); strings.Contains(last, ".") {
		if _, ok := value.Lookup(all, strings.ReplaceAll(last, ".", ":"), ":"); ok {
			return fmt.Sprintf("keys are joined by colons: %s", whole)
		}
	}
	const few = 8
	if names := all.Names(); len(names) > 0 && len(names) <= few {
		return fmt.Sprintf("the keys are %s", strings.Join(names, ", "))
	}
	return ""
}

func (p *program) printValue(v any) error {
	if p.json {
		return p.JSON(v)
	}
	text := value.Str(v) + "\n"
	switch v.(type) {
	case *value.Map, *value.List, value.Tuple:
		text = yaml.Dump(v, yaml.DumpOptions{})
	}
	_, err := fmt.Fprint(p.Out, text)
	return err
}
