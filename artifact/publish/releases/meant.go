package releases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checkMeant refuses, before anything is written, what was probably typed by mistake.
func checkMeant(ctx context.Context, p *publish.Publisher, release artifact.Release, r Request) error {
	if r.New {
		return nil
	}
	n, err := p.Read(ctx)
	if err != nil {
		return err
	}
	if !n.Delegates(r.Project) {
		others := slices.DeleteFunc(n.Client.Projects(), func(name string) bool { return publish.Numberless(name) == publish.Numberless(r.Project) })
		if like := diag.Misspelling(r.Project, others); like != "" {
			return publish.NewMistake(publish.IfMeant, "the store has no project %s, and has one that is called %s", r.Project, like)
		}
	}
	name, version, err := says(ctx, release, r.File)
	switch {
	case err != nil:
		return err
	case name != "" && name != r.Project:
		return publish.NewMistake(publish.IfMeant, "%s is an artifact of the project %s, as its %s says, and was to be published as one of %s", r.File, name, recipe.Name, r.Project)
	case version == "" || version == r.Version:
		return nil
	}
	// A build with --version writes another one than the recipe's into the provenance beside the artifact.
	built, err := builtAs(strings.TrimSuffix(r.File, "."+string(release.Format)) + ".provenance.json")
	if err != nil || built == r.Version {
		return err
	}
	return publish.NewMistake(publish.IfMeant, "%s is version %s, as its %s says, and was to be published as %s", r.File, version, recipe.Name, r.Version)
}

// says is what the recipe in an artifact says of its project and its version; "" where it says nothing.
func says(ctx context.Context, release artifact.Release, file string) (name, version string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", "", fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	data, err := unpack.Peek(ctx, io.NewSectionReader(f, 0, release.Length), release.Format, recipe.Name, 1<<20)
	if err != nil {
		return "", "", nil // what is wrong with the artifact the publish itself finds, in its order
	}
	name, version = recipe.Said(data)
	return name, version, nil
}

// builtAs reads for which version a build wrote a statement. A file that is none says nothing.
func builtAs(file string) (version string, err error) {
	data, err := os.ReadFile(file)
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
