package site

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
)

// RecipeListed returns the recipe of a release. It returns an empty recipe if the file differs from the list of what
// was unpacked.
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

// Recipe is RecipeListed for a release whose list was not read yet.
func (s *Site) Recipe(release artifact.Release) (recipe.Recipe, error) {
	list, err := s.Held().List(release)
	if err != nil {
		return recipe.Recipe{}, err
	}
	return s.RecipeListed(release, list)
}

// withoutCode removes the writable paths that contain, or are, the target of a link in code.
func withoutCode(writable, behind []string) []string {
	return slices.DeleteFunc(slices.Clone(writable), func(name string) bool {
		return slices.ContainsFunc(behind, func(to string) bool { return recipe.Within([]string{name}, to) })
	})
}

// Comparison returns the scope in which a release is compared with its list.
func (s *Site) Comparison(says recipe.Recipe) manifest.Scope {
	return manifest.Scope{Writable: says.Writable, Code: says.Code(), Unlocked: says.Denied, Trusted: s.TrustedUsers()}
}

// Templates returns the configuration files of release directories, with paths as the host sees them. They belong to
// every highstate of these directories.
func (s *Site) Templates(dirs ...string) ([]state.Template, error) {
	var list []state.Template
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		says, err := recipe.Load(walk.Files(s.Layout.Path(dir)))
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", recipe.Name, dir, err)
		}
		for _, t := range says.Templates {
			pos := says.At(path.Clean(t.Source))
			pos.File = filepath.Join(dir, recipe.Name)
			list = append(list, state.Template{
				Source: filepath.Join(dir, t.Source), Target: t.Target, User: t.User, Group: t.Group, Mode: t.Mode, Check: t.Check,
				Pos: pos,
			})
		}
	}
	return list, nil
}
