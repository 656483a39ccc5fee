package site

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// RecipeListed reads what a release says of itself, as its list has it. A recipe that is not the one that was unpacked
// says nothing.
func (s *Site) RecipeListed(release artifact.Release, list *manifest.Manifest) (recipe.Recipe, error) {
	tree := walk.Files(s.LayoutOf(release.Project).Release(release.Dir()))
	if list != nil && !list.Holds(tree, recipe.Name) {
		return recipe.Recipe{}, nil
	}
	says, err := recipe.Load(tree)
	if err != nil {
		return recipe.Recipe{}, exit.WithCode(exit.Usage, err)
	}
	if list != nil && !says.WritableCode {
		all := says.Writable
		says.Writable = withoutCode(all, list.Behind(says.Code()))
		says.Denied = append(says.Denied, slices.DeleteFunc(all, func(name string) bool {
			return slices.Contains(says.Writable, name)
		})...)
	}
	return says, nil
}

// Recipe is RecipeListed for a release of which no list was read yet.
func (s *Site) Recipe(release artifact.Release) (recipe.Recipe, error) {
	list, err := s.Held().List(release)
	if err != nil {
		return recipe.Recipe{}, err
	}
	return s.RecipeListed(release, list)
}

// withoutCode drops writable paths that a link in code leads to, or below which it leads.
func withoutCode(writable, behind []string) []string {
	return slices.DeleteFunc(slices.Clone(writable), func(name string) bool {
		return slices.ContainsFunc(behind, func(to string) bool { return recipe.Within([]string{name}, to) })
	})
}

// Comparison is how a release is compared with its list.
func (s *Site) Comparison(says recipe.Recipe) manifest.Scope {
	return manifest.Scope{Writable: says.Writable, Code: says.Code(), Unlocked: says.Denied, Trusted: s.TrustedUsers()}
}
