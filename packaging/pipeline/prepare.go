package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/packaging/installed"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// prepare reads the recipe and determines name and version.
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
	if b.recipe.Prefix == "" {
		b.recipe.Prefix = "/opt/" + b.result.Name
	}
	misnamed := diag.Recipe.Hint(b.checkName(),
		"write `name: ...` into corpus.yaml; by default the name of the directory is used")
	b.result.Version, err = b.version(ctx)
	return errors.Join(b.checkBase(), misnamed, err, b.installed(ctx))
}

// checkBase checks that the base of an image exists.
func (b *build) checkBase() error {
	base := b.onTop()
	if base == "" {
		return nil
	}
	_, err := os.Stat(base)
	if err != nil {
		err = fmt.Errorf("the image cannot be based on %s: %w", base, err)
	}
	return diag.Recipe.Hint(err, "correct package.base in corpus.yaml, or give --image-base")
}

// installed determines the files of packages and images outside the prefix, before anything is built.
func (b *build) installed(ctx context.Context) error {
	if !slices.ContainsFunc(b.Outputs, func(output string) bool { return format(output) != ".tar.zst" }) {
		return nil
	}
	place := installed.Place{Name: b.result.Name, Prefix: b.recipe.Prefix}
	var errs []error
	for i, word := range b.recipe.Package.Command {
		word, err := place.Text(word)
		if err != nil {
			errs = append(errs, diag.Recipe.Hint(fmt.Errorf("package.command of corpus.yaml: %w", err), "%s", diag.HintOf(err)))
		}
		b.recipe.Package.Command[i] = word
	}
	var err error
	b.files, err = installed.Files(ctx, installed.Request{Place: place, Tree: walk.Files(b.Source), Recipe: b.recipe,
		Render: b.Render})
	return errors.Join(append(errs, err)...)
}

// checkName checks the name, which is by default that of the directory. Names of packages are more restricted.
func (b *build) checkName() error {
	name := b.result.Name
	if err := artifact.CheckProject(name); err != nil {
		return err
	}
	for _, output := range b.Outputs {
		if f := format(output); (f == ".deb" || f == ".rpm") && !recipe.IsName(name) {
			return fmt.Errorf("%q cannot be the name of a package", name)
		}
	}
	return nil
}

func (b *build) version(ctx context.Context) (string, error) {
	version, err := b.described(ctx)
	if err == nil {
		err = artifact.CheckVersion(version)
	}
	if err != nil && !refused(err) {
		err = diag.Usage.Hint(err, "give --version, write version into corpus.yaml, or commit and tag the tree")
	}
	return version, err
}

// idDigits is the number of digits of a commit in a version. By default git prints more of them for larger clones.
const idDigits = 12

// described returns the given version, or the output of git describe.
func (b *build) described(ctx context.Context) (string, error) {
	switch {
	case b.Version != "":
		return b.Version, nil
	case b.recipe.Version != "" && b.recipe.Version != "git":
		return b.recipe.Version, nil
	case b.Commit.Tag != "":
		return strings.TrimPrefix(b.Commit.Tag, "v"), nil
	case b.Commit.ID != "":
		return b.Commit.ID[:min(len(b.Commit.ID), idDigits)], nil
	}
	out, err := b.gitDescribe(ctx, "--tags", "--abbrev="+strconv.Itoa(idDigits))
	if refused(err) {
		return "", err
	}
	if err != nil && b.unnamed {
		return "0", nil
	}
	if err != nil {
		err := fmt.Errorf("the tree has no version: git does not describe it%s", complaint(err))
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), nil
}

// gitDescribe returns the output of git describe.
func (b *build) gitDescribe(ctx context.Context, args ...string) ([]byte, error) {
	if err := clone.CheckHere(b.Source); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", b.Source, "describe", "--always", "--dirty"}, args...)...)
	cmd.Env = append(cmd.Environ(), clone.Config()...)
	return cmd.Output()
}

// refused reports whether git was not run because other users can change programs or configuration that it uses.
func refused(err error) bool {
	var unsafe *walk.UnsafeError
	return errors.As(err, &unsafe)
}

// complaint returns the first line that a program printed before it failed.
func complaint(err error) string {
	var failed *exec.ExitError
	if !errors.As(err, &failed) || len(failed.Stderr) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n")
	return ": " + line
}

// formats returns the endings of outputs.
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
			return diag.Usage.Hint(fmt.Errorf("%s: corpus build does not write that format", output), "end it in one of %s",
				strings.Join(formats(), ", "))
		}
	}
	return nil
}

// onTop returns the base of the image; a path in the recipe is relative to its tree.
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
