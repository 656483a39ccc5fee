package releases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checkMistyped returns an error, before anything is written, for a project or a version that looks mistyped.
func checkMistyped(ctx context.Context, p *publish.Publisher, release artifact.Release, r Request) error {
	if r.New {
		return nil
	}
	n, err := p.Read(ctx)
	if err != nil {
		return err
	}
	if !n.Delegates(r.Project) {
		others := slices.DeleteFunc(n.Client.Projects(), func(name string) bool {
			return publish.WithoutDigits(name) == publish.WithoutDigits(r.Project)
		})
		if like := diag.Misspelling(r.Project, others); like != "" {
			return publish.NewMistake(diag.Usage, publish.HintIfMeant,
				"the store has no project %s, and has one that is called %s",
				r.Project, like)
		}
	}
	name, version, err := recipeSays(ctx, release, r.File)
	if err != nil {
		return err
	}
	if version != "" && version != r.Version {
		// A build with --version writes that version, not the recipe's, into the provenance beside the artifact.
		built, err := builtAs(strings.TrimSuffix(r.File, "."+string(release.Format)) + ".provenance.json")
		if err != nil {
			return err
		}
		if built == r.Version {
			version = ""
		}
	}
	return r.CheckSaid(r.File, name, version)
}

// CheckSaid returns an error for an artifact, or the tree of one, whose recipe names another project or version; "" for
// none.
func (r Request) CheckSaid(what, name, version string) error {
	switch {
	case r.New:
	case name != "" && name != r.Project:
		return publish.NewMistake(diag.Usage, publish.HintIfMeant,
			"%s is an artifact of the project %s, as its %s says, and was to be published as one of %s", what, name,
			recipe.Name, r.Project)
	case version != "" && version != r.Version:
		return publish.NewMistake(diag.Usage, publish.HintIfMeant,
			"%s is version %s, as its %s says, and was to be published as %s",
			what, version, recipe.Name, r.Version)
	}
	return nil
}

// recipeSays returns the project and the version that the recipe in an artifact names, or "".
func recipeSays(ctx context.Context, release artifact.Release, file string) (name, version string, err error) {
	f, err := walk.OpenFile(file)
	if err != nil {
		return "", "", fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	data, err := unpack.Peek(ctx, io.NewSectionReader(f, 0, release.Length), release.Format, recipe.Name, 1<<20)
	if err != nil {
		return "", "", nil // Publish itself reports faults of the artifact
	}
	name, version = recipe.Said(data)
	return name, version, nil
}

// builtAs returns the version in the provenance that a build wrote beside the artifact, or "".
func builtAs(file string) (version string, err error) {
	data, err := walk.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var statement struct {
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters struct{ Version string }
			}
		}
	}
	if trust.DecodeInto(data, &statement) != nil {
		return "", nil
	}
	return statement.Predicate.BuildDefinition.ExternalParameters.Version, nil
}
