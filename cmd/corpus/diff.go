package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/check"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// releaseDiff is the difference between two releases of a project.
type releaseDiff struct {
	Project  string              `json:"project"`
	Old      artifact.Release    `json:"old"`
	New      artifact.Release    `json:"new"`
	Files    fileDiff            `json:"files"`
	Units    []string            `json:"units"`    // systemd units among the files that differ
	Packages []string            `json:"packages"` // differences in words
	Listed   bool                `json:"packages_listed"`
	States   []check.StateChange `json:"states"`
	Hosts    int                 `json:"hosts"`  // for which the states were compiled
	Unsure   []string            `json:"unsure"` // hosts for which one of the trees does not compile without the host
}

type fileDiff struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
}

func (p *program) diffCommand() *cobra.Command {
	k := &checking{program: p}
	c := &cobra.Command{
		Use:   "diff PROJECT OLD NEW",
		Short: "Show how two releases of a project differ: files, units, packages, states, sizes",
		Long: `diff fetches two releases of a project, verifies them, and shows what differs: files, systemd units, packages where both
releases have lists of them, sizes, and the states that the top files assign. OLD and NEW are versions, or names of
channels for what these name now. Nothing is changed.

States are compiled for the hosts of --grains, or for the usual ones, as "corpus check" does. Of a state that differs only
the names of arguments are shown, since their values may be secrets.

Exit codes: 0 shown, whether or not the releases differ; 2 usage, or no such release; others as for corpus ls.`,
		Example: `  corpus diff myapp 1.0 1.1 --store s3://bucket/prefix --trust-root keys/root.json
  corpus diff myapp production testing --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error { return k.diff(c.Context(), args[0], args[1], args[2]) },
	}
	cli.RepeatedVar(c.Flags(), &k.grains, "grains", "", "file of hosts and their grains, YAML or JSON; may be given "+
		"several times")
	return c
}

func (k *checking) diff(ctx context.Context, project, older, newer string) error {
	client, done, err := k.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	if all := client.Projects(); !slices.Contains(all, project) {
		return noSuch("project", project, all)
	}
	list, err := client.ListOne(ctx, project)
	if err != nil {
		return err
	}
	d := releaseDiff{Project: project, Packages: []string{}, States: []check.StateChange{}, Units: []string{},
		Unsure: []string{}}
	if d.Old, err = releaseNamed(list, older); err != nil {
		return err
	}
	if d.New, err = releaseNamed(list, newer); err != nil {
		return err
	}
	if err := k.compare(ctx, comparing{client: client}, &d); err != nil {
		return err
	}
	if k.json {
		return k.JSON(d)
	}
	return d.print(k.IO)
}

// compare fetches both releases and fills in the differences.
func (k *checking) compare(ctx context.Context, c comparing, d *releaseDiff) error {
	var packages [2]map[string]string
	var trees [2]*manifest.Manifest
	var reports [2]*check.Report
	minions, err := k.minions([]string{d.Project})
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	for i, r := range []artifact.Release{d.Old, d.New} {
		if packages[i], err = c.packages(ctx, r); err != nil {
			return err
		}
		dir, done, err := durable.Scratch()
		if err != nil {
			return err
		}
		defer done()
		if trees[i], err = c.unpacked(ctx, r, dir, unpack.Limits{}); err != nil {
			return err
		}
		tree, err := k.sourcesOf([]string{filepath.Join(dir, "tree")}, "")
		if err != nil {
			return err
		}
		if reports[i], err = check.Trees(ctx, tree, minions); err != nil {
			return err
		}
	}
	d.fill(packages, trees, reports)
	return nil
}

func (d *releaseDiff) fill(packages [2]map[string]string, trees [2]*manifest.Manifest, reports [2]*check.Report) {
	if d.Listed = packages[0] != nil && packages[1] != nil; d.Listed {
		d.Packages = append(d.Packages, changedPackages(packages[0], packages[1])...)
	}
	var files pages.Comparison
	changedFiles(&files, trees[0], trees[1])
	d.Files = fileDiff{append([]string{}, files.Added...), append([]string{}, files.Removed...),
		append([]string{}, files.Changed...)}
	for _, name := range slices.Concat(files.Added, files.Removed, files.Changed) {
		if isUnit(name) {
			d.Units = append(d.Units, name)
		}
	}
	slices.Sort(d.Units)
	sure := [2]check.Report{}
	for i, before := range reports[0].Hosts {
		if after := reports[1].Hosts[i]; before.Arguments == nil || after.Arguments == nil {
			d.Unsure = append(d.Unsure, after.ID)
		} else {
			sure[0].Hosts, sure[1].Hosts = append(sure[0].Hosts, before), append(sure[1].Hosts, after)
		}
	}
	d.Hosts = len(sure[0].Hosts)
	d.States = append(d.States, check.Changed(&sure[0], &sure[1])...)
}

// isUnit reports whether a file of a release is a systemd unit or a drop-in of one.
func isUnit(name string) bool {
	kinds := []string{".service", ".socket", ".timer", ".path", ".mount", ".target", ".slice"}
	return slices.Contains(kinds, filepath.Ext(name)) || strings.Contains(name, ".service.d/")
}

// releaseNamed returns the release with the given version, or the release to which the channel of that name points.
func releaseNamed(l trust.Listing, name string) (artifact.Release, error) {
	version := name
	if pointer, is := l.Channels[name]; is {
		version = pointer.Version
	}
	known := slices.Collect(maps.Keys(l.Channels))
	for _, r := range l.Releases {
		if r.Version == version {
			return r, nil
		}
		known = append(known, r.Version)
	}
	slices.Sort(known)
	return artifact.Release{}, noSuch("version or channel of "+l.Project, name, known)
}

func noSuch(what, name string, known []string) error {
	hint := diag.DidYouMean(name, known)
	if hint == "" {
		hint = "corpus ls lists projects, channels and versions"
	}
	return exit.WithCode(exit.Usage, diag.Unpublished.Hint(fmt.Errorf("there is no %s named %s", what, name), "%s", hint))
}

func (d *releaseDiff) print(out cli.IO) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s -> %s\n", d.Project, d.Old.Version, d.New.Version)
	fmt.Fprintf(&b, "size: %s -> %s\n", diag.Size(d.Old.Length), diag.Size(d.New.Length))
	fmt.Fprintf(&b, "files: %d added, %d removed, %d changed\n", len(d.Files.Added), len(d.Files.Removed),
		len(d.Files.Changed))
	for _, part := range []struct {
		sign  string
		names []string
	}{{"+", d.Files.Added}, {"-", d.Files.Removed}, {"~", d.Files.Changed}} {
		for _, name := range part.names {
			fmt.Fprintf(&b, "  %s %s\n", part.sign, name)
		}
	}
	if len(d.Units) > 0 {
		fmt.Fprintf(&b, "units: %s\n", strings.Join(d.Units, ", "))
	}
	d.printPackages(&b)
	d.printStates(&b)
	_, err := fmt.Fprint(out.Out, b.String())
	return err
}

// differ formats how many things differ.
func differ(n int) string {
	if n == 1 {
		return "1 differs"
	}
	return fmt.Sprintf("%d differ", n)
}

func (d *releaseDiff) printPackages(b *strings.Builder) {
	if !d.Listed {
		b.WriteString("packages: the store has no lists of both releases\n")
		return
	}
	fmt.Fprintf(b, "packages: %s\n", differ(len(d.Packages)))
	for _, line := range d.Packages {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

func (d *releaseDiff) printStates(b *strings.Builder) {
	fmt.Fprintf(b, "states: %s on %s\n", differ(len(d.States)), diag.Count(d.Hosts, "host"))
	signs := map[string]string{"added": "+", "removed": "-", "changed": "~"}
	for _, s := range d.States {
		fmt.Fprintf(b, "  %s %s", signs[s.Change], s.State)
		if len(s.Arguments) > 0 {
			fmt.Fprintf(b, ": %s", strings.Join(s.Arguments, ", "))
		}
		if len(s.Hosts) < d.Hosts {
			fmt.Fprintf(b, " (on %s)", named(s.Hosts, mostListed))
		}
		b.WriteString("\n")
	}
	if len(d.Unsure) > 0 {
		fmt.Fprintf(b, "  not compared on %s: corpus check shows why their trees do not compile here\n",
			named(d.Unsure, mostListed))
	}
}
