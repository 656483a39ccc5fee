package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ifMeant is the hint of what meant refuses.
const ifMeant = "correct the command; or if it is meant, give --new as well"

// meant refuses, before anything is written, what was probably typed by mistake.
func (p *Publisher) meant(ctx context.Context, release artifact.Release, r Request) error {
	if r.New {
		return nil
	}
	n, err := p.Read(ctx)
	if err != nil {
		return err
	}
	if !n.delegates(r.Project) {
		others := slices.DeleteFunc(n.Client.Projects(), func(name string) bool { return numberless(name) == numberless(r.Project) })
		if like := diag.Misspelling(r.Project, others); like != "" {
			return mistake(ifMeant, "the store has no project %s, and has one that is called %s", r.Project, like)
		}
	}
	name, version, err := says(ctx, release, r.File)
	switch {
	case err != nil:
		return err
	case name != "" && name != r.Project:
		return mistake(ifMeant, "%s is an artifact of the project %s, as its %s says, and was to be published as one of %s", r.File, name, recipe.Name, r.Project)
	case version == "" || version == r.Version:
		return nil
	}
	// A build with --version writes another one than the recipe's into the provenance beside the artifact.
	built, err := builtAs(strings.TrimSuffix(r.File, "."+string(release.Format)) + ".provenance.json")
	if err != nil || built == r.Version {
		return err
	}
	return mistake(ifMeant, "%s is version %s, as its %s says, and was to be published as %s", r.File, version, recipe.Name, r.Version)
}

// usualChannels are names of channels that projects have, or will have.
func usualChannels() []string { return []string{"testing", "staging", "production"} }

// meantChannel refuses a channel that a project does not have where its name was probably typed by mistake: it is a letter or
// two off that of another channel of the project, or off a usual one.
func (n *Next) meantChannel(channel string, channels map[string]trust.Pointer) error {
	if _, there := channels[channel]; there || n.newName || slices.Contains(usualChannels(), channel) {
		return nil
	}
	known := append(slices.Sorted(maps.Keys(channels)), usualChannels()...)
	known = slices.DeleteFunc(known, func(name string) bool { return numberless(name) == numberless(channel) })
	if like := diag.Misspelling(channel, known); like != "" {
		return mistake(ifMeant, "the project has no channel %s, and the name is nearly that of %s", channel, like)
	}
	return nil
}

// numberless is a name without its digits: shop2 beside shop1 is no mistake.
func numberless(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
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
