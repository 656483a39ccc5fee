package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/builder"
	"github.com/corpus-agent/corpus-agent/packaging/statement"
)

// run makes the release in the stage.
func (b *build) run(ctx context.Context) error {
	source := filepath.Join(b.work, "source")
	skip, err := b.made()
	if err != nil {
		return err
	}
	if err := builder.CopyTree(ctx, b.Source, source, func(name string) bool { return skip[name] }); err != nil {
		return err
	}
	if err := os.MkdirAll(b.stage, 0o755); err != nil {
		return err
	}
	job := builder.Job{Recipe: b.recipe, Source: source, Stage: b.stage, Prefix: b.recipe.Prefix,
		Log: b.logger(), Run: builder.Here{}}
	if b.recipe.Build.Base != "" {
		if err := b.enterBase(ctx, &job); err != nil {
			return err
		}
	}
	b.announce()
	if err := builder.Build(ctx, job); err != nil {
		return err
	}
	b.stage = job.Stage
	if err := packaging.Drop(b.stage, b.recipe.LeaveOut); err != nil {
		return err
	}
	release := os.DirFS(b.stage)
	if err := errors.Join(b.recipe.MissingProbes(release), b.recipe.Unread(release)); err != nil {
		return err
	}
	if err := packaging.Check(ctx, b.stage, packaging.Options{Allow: packaging.AllowedBy(b.recipe),
		Checked: b.Unscanned}); err != nil {
		return err
	}
	return b.describe(ctx)
}

// announce reports that the programs of a builder begin, which may print nothing for minutes.
func (b *build) announce() {
	if b.recipe.Builder == "" || b.recipe.Builder == "tree" {
		return // it copies files, which is quick
	}
	text := fmt.Sprintf("building %s %s with the builder %s", b.result.Name, b.result.Version, b.recipe.Builder)
	switch {
	case b.Waiting != nil:
		b.Waiting(text)
	case b.Log != nil:
		_, _ = fmt.Fprintln(b.Log, text) // as for the output of the programs: if the log fails, so does the build
	}
}

// made returns the paths in the tree that are not sources but were left by a build.
func (b *build) made() (map[string]bool, error) {
	skip := map[string]bool{".git": true}
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return nil, err
	}
	if base := b.onTop(); base != "" {
		if base, err = filepath.Abs(base); err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(source, base); err == nil {
			skip[rel] = true
		}
	}
	for i, output := range b.Outputs {
		file, err := filepath.Abs(output)
		if err != nil {
			return nil, err
		}
		names := []string{file}
		if i == 0 {
			names = append(names, file+".log")
			for _, ending := range statementEndings() {
				names = append(names, strings.TrimSuffix(file, format(file))+ending)
			}
		}
		for _, name := range names {
			if rel, err := filepath.Rel(source, name); err == nil {
				skip[rel] = true
			}
		}
	}
	return skip, nil
}

// statementEndings returns the endings of the list of contents and of the provenance.
func statementEndings() []string { return []string{".spdx.json", ".provenance.json"} }

func (b *build) logger() io.Writer {
	if b.Log == nil {
		return b.log
	}
	return io.MultiWriter(b.log, b.Log)
}

// enterBase sets up the job to run inside its base system.
func (b *build) enterBase(ctx context.Context, job *builder.Job) error {
	base, err := builder.OpenBase(ctx, builder.Opening{
		System: b.recipe.Build.Base, Packages: b.recipe.Build.Needs, Cache: b.Cache, Work: b.work, Log: b.logger(),
		Waiting: b.Waiting,
	})
	if err != nil {
		return err
	}
	if err := base.Put(ctx, job.Source, "/build/source"); err != nil {
		return err
	}
	b.base = base.Root
	job.Run, job.Source, job.Stage = base, filepath.Join(base.Root, "build/source"), filepath.Join(base.Root,
		"build/release")
	return os.MkdirAll(job.Stage, 0o755)
}

// describe writes the description of the release into it.
func (b *build) describe(ctx context.Context) error {
	release := os.DirFS(b.stage)
	var err error
	if b.result.Content, err = statement.Content(ctx, release, needs.File); err != nil {
		return err
	}
	if b.result.Needs, err = needs.Of(release); err != nil {
		return err
	}
	if b.result.Needs.Interpreters, err = needs.Scripts(release, "/srv", b.recipe.Prefix); err != nil {
		return err
	}
	if b.recipe.Builder == "python" {
		b.result.Needs.Programs = append(b.result.Needs.Programs, homePython(b.stage)...)
	}
	return b.writeNeeds()
}

// writeNeeds writes the description of the release, with its needs, into its tree, where hosts read it.
func (b *build) writeNeeds() error {
	data, err := json.MarshalIndent(b.result.Release, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(b.stage, needs.File)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// homePython returns the interpreter whose library a virtualenv uses.
func homePython(stage string) []string {
	data, err := os.ReadFile(filepath.Join(stage, "venv/pyvenv.cfg"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && key == "executable" {
			return []string{value}
		}
	}
	return nil
}
