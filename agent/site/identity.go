package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Identify returns the identity of the host. The caller that saves it stores values from the command line in the
// ledger.
func (s *Site) Identify(ctx context.Context, given grains.Identity, known ledger.Host) (grains.Identity, error) {
	convention, err := grains.NewConvention(s.Config.Convention)
	if err != nil {
		return grains.Identity{}, exit.WithCode(exit.Usage, err)
	}
	hostname, err := s.TreeHostname()
	if err != nil {
		return grains.Identity{}, err
	}
	request := grains.Request{
		Hostname: hostname, Convention: convention, Given: given,
		Configured: s.configured(known), OnCloud: s.OnCloud,
	}
	if s.Config.Metadata {
		request.Cloud = s.Cloud
	}
	id, _, err := grains.Decide(ctx, request)
	return id, exit.WithCode(exit.Usage, err)
}

// configured returns the identity from the configuration, or else the one that the host was given before.
func (s *Site) configured(known ledger.Host) grains.Identity {
	c := s.Config
	id := grains.Identity{Service: c.Service, Instance: c.Instance, Region: c.Region, Node: c.Node}
	if id.Service == "" && id.Instance == "" {
		id.Service, id.Instance = known.Service, known.Instance
	}
	if id.Region == "" {
		id.Region = known.Region
	}
	if id.Node == "" {
		id.Node = known.Node
	}
	return id
}

// TreeHostname returns the hostname of the tree: a relocated tree may have its own.
func (s *Site) TreeHostname() (string, error) {
	if s.Layout.Relocated() {
		data, _, err := walk.Read(s.Layout.Path("/etc/hostname"))
		if name := strings.TrimSpace(string(data)); err != nil || name != "" {
			return name, err
		}
	}
	name, err := s.hostname()
	if err != nil {
		return "", fmt.Errorf("reading the hostname: %w", err)
	}
	return name, nil
}

// GrainDirs holds directories with grains besides those of the host's configuration.
type GrainDirs struct {
	Base string   // base's release, whose directory grains has programs, files and Salt's grain modules; "" for none
	More []string // further such directories, with priority over base's
	// States are the roots of the state tree, the first the strongest. What their directories _grains have comes first.
	States []string
	// Options are those of a minion file, which grain modules see as __opts__; nil for the host's ID and little more.
	Options *value.Map
}

// Grains returns all grains of the host. Errors of programs and modules are returned as warnings.
func (s *Site) Grains(ctx context.Context, id grains.Identity, dirs GrainDirs) (all *value.Map, warnings []error,
	err error) {
	root := ""
	if s.Layout.Relocated() {
		root = s.Layout.Root
	}
	hostname, err := s.TreeHostname()
	if err != nil {
		return nil, nil, err
	}
	facts, err := grains.Collect(ctx, grains.Source{Root: root, ID: hostname})
	if err != nil {
		return nil, nil, err
	}
	misplaced := s.MisplacedConfiguration()
	static, err := custom.ReadFile(s.Layout.StaticGrains())
	if err != nil && !errors.Is(err, os.ErrNotExist) && misplaced == nil && !s.Skips(err) {
		return nil, nil, exit.WithCode(exit.Usage, err)
	}
	check := s.grainCheck(dirs)
	options := custom.Options{Dirs: append(s.grainDirs(dirs.Base), dirs.More...), Root: root, Identity: id,
		Check: check,
		Modules: func(ctx context.Context, files []string) (map[string]custom.ModuleAnswer, error) {
			return s.runGrainModules(ctx, hostname, facts, dirs, check, files)
		}}
	for _, root := range slices.Backward(dirs.States) {
		options.ModuleDirs = append(options.ModuleDirs, filepath.Join(root, "_grains"))
	}
	switch {
	case s.Chroot:
		options.Chroot = true
	case s.Layout.Relocated():
		options.Skip = "the root is not the running system"
	}
	found := custom.Load(ctx, options)
	if misplaced != nil {
		found.Warnings = append(found.Warnings, misplaced)
	}
	if err := errors.Join(slices.DeleteFunc(found.Unreadable, s.Skips)...); err != nil {
		return nil, nil, exit.WithCode(exit.Usage, diag.Identity.Hint(err, "make it readable by the agent, or remove it"))
	}
	warnings = found.Warnings
	for _, program := range found.Skipped {
		warnings = append(warnings, fmt.Errorf("skipped %s: it would run on the running system", program))
	}
	return grains.Layers{Core: facts.All(ctx), Static: static, Custom: found.Grains, Identity: id}.Merge(), warnings, nil
}

func (s *Site) grainDirs(base string) []string {
	var dirs []string
	if !walk.Misplaced(s.Layout.Configuration()) {
		dirs = append(dirs, filepath.Join(s.Layout.Configuration(), "grains.d"))
	}
	if base != "" {
		dirs = append([]string{filepath.Join(base, "grains")}, dirs...)
	}
	return dirs
}

// MisplacedConfiguration returns an error if the path of the configuration directory is not a directory. The settings
// then come from their copy, and the host has no grains or keys of its own.
func (s *Site) MisplacedConfiguration() error {
	dir := s.Layout.Configuration()
	if !walk.Misplaced(dir) {
		return nil
	}
	hint := fmt.Sprintf("move it away, and bring the directory back from a backup: mv -T %[1]s %[1]s.damaged", dir)
	if damaged := s.Config.File.Damaged; damaged != nil && damaged.Copy != "" {
		hint += fmt.Sprintf("; where there is no backup, the settings alone: mkdir %s && cp %s %s", dir, damaged.Copy,
			s.Layout.Config())
	}
	return diag.ConfigLost.Hint(
		fmt.Errorf("%s is not a directory, so nothing of this host's own configuration, grains and keys is read", dir), "%s",
		hint)
}
