package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// prepare reads the recipe and decides on name and version.
func (b *build) prepare(ctx context.Context) error {
	var err error
	if err = b.checkOutputs(); err != nil {
		return err
	}
	if b.recipe, err = recipe.LoadStrict(os.DirFS(b.Source)); err != nil {
		return err
	}
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return err
	}
	b.result.Name = b.recipe.Name
	if b.result.Name == "" {
		b.result.Name = filepath.Base(source)
	}
	b.result.Builder, b.result.Base = b.recipe.Builder, b.recipe.Build.Base
	if base := b.onTop(); base != "" {
		if _, err := os.Stat(base); err != nil {
			return diag.WithHint(fmt.Errorf("the image cannot be put on %s: %w", base, err), "mend package.base in corpus.yaml, or give --image-base")
		}
	}
	if b.recipe.Prefix == "" {
		b.recipe.Prefix = "/opt/" + b.result.Name
	}
	b.result.Version, err = b.version(ctx)
	return errors.Join(err, b.checkNames())
}

func (b *build) version(ctx context.Context) (string, error) {
	switch {
	case b.Version != "":
		return b.Version, nil
	case b.recipe.Version != "" && b.recipe.Version != "git":
		return b.recipe.Version, nil
	}
	out, err := exec.CommandContext(ctx, "git", "-C", b.Source, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "", diag.WithHint(errors.New("the tree has no version: git does not describe it"), "give --version, write version into corpus.yaml, or commit and tag the tree")
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), nil
}

// formats are the endings of outputs.
func formats() []string { return []string{".tar.zst", ".deb", ".rpm", ".oci.tar"} }

func format(output string) string {
	for _, f := range formats() {
		if strings.HasSuffix(output, f) {
			return f
		}
	}
	return ""
}

func (b *build) checkOutputs() error {
	for _, output := range b.Outputs {
		if format(output) == "" {
			return diag.WithHint(fmt.Errorf("%s: corpus build does not write that form", output), "end it in one of %s", strings.Join(formats(), ", "))
		}
	}
	return nil
}

// checkNames finds paths that the recipe names and the tree does not have, all at once.
func (b *build) checkNames() error {
	names := append([]string{}, b.recipe.Units...)
	for _, t := range b.recipe.Templates {
		names = append(names, t.Source)
	}
	p, build := b.recipe.Package, b.recipe.Build
	for _, name := range []string{p.PostInstall, p.PreRemove, build.Requirements, build.Wheels} {
		if name != "" {
			names = append(names, name)
		}
	}
	var problems diag.List
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(b.Source, name)); err != nil {
			problems.Add(diag.Pos{File: recipe.Name}, "it names %s, which is not in the tree", name).WithHint("add the file, or mend the name")
		}
	}
	return problems.Err()
}

// onTop is what an image is put on; what a recipe names is relative to its tree.
func (b *build) onTop() string {
	base := b.recipe.Package.Base
	switch {
	case b.OnTop != "":
		return b.OnTop
	case base == "" || filepath.IsAbs(base):
		return base
	}
	return filepath.Join(b.Source, base)
}
