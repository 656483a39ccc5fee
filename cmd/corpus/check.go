package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/check"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checking has the flags and the output of the check command.
type checking struct {
	*program
	grains, pillar []string
	format, output string
}

func (p *program) checkCommand() *cobra.Command {
	k := &checking{program: p}
	c := &cobra.Command{
		Use:   "check TREE...",
		Short: "Compile a tree's SLS files for hosts that do not exist, and show all mistakes",
		Long: `check compiles what the top files of trees assign to hosts, and shows every mistake with its place. It needs no host
and changes nothing. Several trees are one, as a service and base are on a host: the first that has a file wins.

Hosts are those of the files that --grains names: a mapping of names of hosts to their grains, or what
"corpus-agent grains --json" printed on a host. Without --grains a tree is compiled for Debian, Ubuntu and Rocky hosts in
testing and production. What depends on the host itself, such as the output of a command, is a note and no mistake.

Exit codes: 0 no mistakes, 2 usage or mistakes, 130 interrupted.`,
		Example: `  corpus check ./myapp
  corpus check ./myapp ./base --grains hosts.yaml
  corpus check /srv/salt --pillar /srv/pillar
  corpus check ./myapp --format sarif -o check.sarif
  corpus check ./myapp --format junit -o check.xml`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return k.run(c.Context(), args) },
	}
	f := c.Flags()
	cli.RepeatedVar(f, &k.grains, "grains", "", "file of hosts and their grains, YAML or JSON; may be given several times")
	cli.RepeatedVar(f, &k.pillar, "pillar", "", "directory of pillar files beside those of the trees; may be given "+
		"several times")
	f.StringVar(&k.format, "format", "", "text, json, sarif or junit (default text)")
	f.StringVarP(&k.output, "output", "o", "", "file to write instead of printing")
	return c
}

func (k *checking) run(ctx context.Context, trees []string) error {
	write, err := k.writer()
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	sources, err := k.sourcesOf(trees, "give the directory of a tree, such as one that corpus init made")
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	pillar, err := k.sourcesOf(k.pillar, "give a directory of pillar files to --pillar")
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	for _, dir := range pillar {
		dir.Pillar = true
		sources = append(sources, dir)
	}
	minions, err := k.minions(trees)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	report, err := check.Trees(ctx, sources, minions)
	if err != nil {
		return err
	}
	relative(report)
	var out strings.Builder
	if err := write(&out, report); err != nil {
		return err
	}
	if k.output == "" {
		_, err = io.WriteString(k.Out, out.String())
	} else {
		err = durable.WriteFile(k.output, []byte(out.String()), 0o644)
	}
	if err == nil && len(report.Mistakes()) > 0 {
		err = exit.WithCode(exit.Usage, cli.AlreadyReported(errors.New("the trees have mistakes")))
	}
	return err
}

// sourcesOf opens directories of SLS files. Errors about names that are not directories get the hint.
func (p *program) sourcesOf(trees []string, hint string) (all []check.Source, err error) {
	for _, tree := range trees {
		if err := isTree(tree); err != nil {
			return nil, diag.Usage.Hint(err, "%s", hint)
		}
		dir, err := filepath.Abs(tree)
		if err != nil {
			return nil, err
		}
		root, err := walk.OpenTree(dir)
		if err != nil {
			return nil, err
		}
		p.cleanups = append(p.cleanups, func() { _ = root.Close() })
		all = append(all, check.Source{Dir: dir, Files: root.FS()})
	}
	return all, nil
}

// writer returns the function that writes a report in the chosen format.
func (k *checking) writer() (func(io.Writer, *check.Report) error, error) {
	if k.json && k.format == "" {
		k.format = "json"
	}
	formats := map[string]func(io.Writer, *check.Report) error{
		"": writeFindings, "text": writeFindings, "json": check.WriteJSON, "junit": check.WriteJUnit,
		"sarif": func(w io.Writer, r *check.Report) error { return check.WriteSARIF(w, r, cli.Version) },
	}
	if write, known := formats[k.format]; known {
		return write, nil
	}
	names := []string{"text", "json", "sarif", "junit"}
	hint := diag.DidYouMean(k.format, names)
	if hint == "" {
		hint = "formats are " + strings.Join(names, ", ")
	}
	return nil, diag.Usage.Hint(fmt.Errorf("there is no format %s", k.format), "%s", hint)
}

// minions reads the hosts from the files of --grains, or returns the default hosts if there are none.
func (k *checking) minions(trees []string) ([]check.Minion, error) {
	if len(k.grains) == 0 {
		return check.Defaults(serviceOf(trees[0])), nil
	}
	var all []check.Minion
	for _, file := range k.grains {
		data, err := walk.ReadGiven(file)
		if err != nil {
			return nil, fmt.Errorf("reading the grains of hosts: %w", err)
		}
		minions, err := check.Matrix(string(data), file)
		if err != nil {
			return nil, err
		}
		all = append(all, minions...)
	}
	return all, nil
}

// serviceOf returns the name of the service of a tree: the name in its recipe, or else the name of its directory.
func serviceOf(tree string) string {
	if r, err := recipe.Load(os.DirFS(tree)); err == nil && r.Name != "" {
		return r.Name
	}
	full, err := filepath.Abs(tree)
	if err != nil {
		full = tree
	}
	return strings.ReplaceAll(filepath.Base(full), "-", "")
}

// relative makes the paths of findings relative to the working directory if they are below it.
func relative(r *check.Report) {
	here, err := os.Getwd()
	if err != nil {
		return
	}
	for _, f := range r.Findings {
		f.Pos.File = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(f.Pos.File) // one line for each finding
		if name, err := filepath.Rel(here, f.Pos.File); err == nil && filepath.IsAbs(f.Pos.File) && filepath.IsLocal(name) {
			f.Pos.File = name
		}
	}
}

// mostListed is the maximum number of hosts and files that a line of text lists.
const mostListed = 3

// writeFindings writes findings as text for people, and one line that counts the hosts, files and states that were
// checked.
func writeFindings(w io.Writer, r *check.Report) error {
	var states int
	files := map[string]bool{}
	for _, h := range r.Hosts {
		states += h.States
		for _, name := range h.SLS {
			files[name] = true
		}
	}
	for _, f := range r.Findings {
		kind := ""
		if f.Note {
			kind = "note: "
		}
		fmt.Fprintln(w, kind+f.Text())
		if n := len(f.Minions); n > 0 && n < len(r.Hosts) {
			fmt.Fprintln(w, "on "+named(f.Minions, mostListed))
		}
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(w, "note: none of the hosts gets %s\n", named(r.Unused, mostListed))
	}
	if len(r.UnusedPillar) > 0 {
		fmt.Fprintf(w, "note: of the pillar, none of the hosts gets %s\n", named(r.UnusedPillar, mostListed))
	}
	mistakes := len(r.Mistakes())
	_, err := fmt.Fprintf(w, "checked %s: %s from %s; %s, %s\n", diag.Count(len(r.Hosts), "host"),
		diag.Count(states, "state"),
		diag.Count(len(files), "SLS file"), diag.Count(mistakes, "mistake"), diag.Count(len(r.Findings)-mistakes, "note"))
	return err
}

// named joins the first names with commas, at most most of them, and adds the number of the others.
func named(all []string, most int) string {
	shown := strings.Join(all[:min(len(all), most)], ", ")
	if more := len(all) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}
