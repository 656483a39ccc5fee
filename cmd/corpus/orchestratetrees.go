package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// userData returns the user data that `corpus bootstrap` prints for the settings of a launch configuration.
func userData(settings *value.Map) (string, error) {
	b, known := packaging.Bootstrap{Balance: value.Truth(settings.Value("elb"))}, []string{"elb"}
	for name, field := range map[string]*string{"store": &b.Store, "agent": &b.Agent, "trust_root": &b.Root,
		"agent_digest": &b.Sum, "service": &b.Service, "instance": &b.Instance} {
		known = append(known, name)
		if v := settings.Value(name); v != nil {
			*field = value.Str(v)
		}
	}
	for _, name := range settings.Names() {
		if !slices.Contains(known, name) {
			return "", diag.Usage.Hint(fmt.Errorf("bootstrap has no setting %s", name), "%s", diag.DidYouMean(name, known))
		}
	}
	b.Sum = strings.TrimPrefix(b.Sum, "sha256:")
	return b.UserData()
}

// trees sets the directories of SLS files from --tree, or from the minion file of -c.
func (o *orchestrating) trees(s *session.Settings) error {
	switch {
	case (o.tree == "") == (o.minion == ""):
		return diag.Usage.Hint(errors.New("one of --tree and -c says where the SLS files are"),
			"give --tree DIR, or -c DIR with a Salt minion file")
	case o.minion != "":
		c, err := minion.Load(o.minion)
		if err != nil {
			return err
		}
		o.configuration = c.Files
		s.States, s.Pillar, s.Options, s.Failhard = c.States, c.Pillar, c.Options, c.Failhard
		s.Grains.Update(c.Grains)
		if c.ID != "" {
			s.ID = c.ID
			s.Grains.Set("id", c.ID)
		}
		return nil
	}
	tree, err := filepath.Abs(o.tree)
	if err != nil {
		return err
	}
	root, err := existing(tree)
	if err != nil {
		return err
	}
	if len(root) == 0 {
		return diag.Usage.Hint(fmt.Errorf("there is no directory %s", tree), "--tree takes the directory of SLS files")
	}
	states, err := existing(filepath.Join(tree, "states"), tree)
	if err != nil {
		return err
	}
	s.States = []roots.Env{{Name: "base", Dirs: states}}
	pillars, err := existing(filepath.Join(tree, "pillar"))
	if len(pillars) > 0 {
		s.Pillar = []roots.Env{{Name: "base", Dirs: pillars}}
	}
	return err
}

// existing returns the directories that exist.
func existing(dirs ...string) (all []string, err error) {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		found, err := walk.Found(err)
		if err != nil {
			return nil, err
		}
		if found && info.IsDir() {
			all = append(all, dir)
		}
	}
	return all, nil
}

// given sets the grains and the pillar of the command line.
func (o *orchestrating) given(s *session.Settings) error {
	for _, one := range o.set {
		if strings.HasPrefix(strings.TrimSpace(one), "=") {
			return diag.Usage.Hint(fmt.Errorf("--set %s has no name", one), "write --set NAME=VALUE")
		}
	}
	args, grains := session.ParseArguments(o.set)
	if len(args) > 0 {
		return diag.Usage.Hint(fmt.Errorf("--set %s has no value", value.Str(args[0])), "write --set NAME=VALUE")
	}
	s.Grains.Update(grains)
	var dirs []string
	for _, path := range o.pillar {
		is, err := walk.Directory(path)
		if err != nil {
			return fmt.Errorf("--pillar %s: %w", path, err)
		}
		if is {
			dir, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			dirs = append(dirs, dir)
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return diag.Usage.Hint(fmt.Errorf("--pillar: %w", err), "name a directory of pillar files, or a YAML file")
		}
		data, err := custom.ReadFile(path)
		if err != nil {
			return err
		}
		s.Override = s.Override.Clone()
		s.Override.Update(data)
	}
	if len(dirs) > 0 {
		s.Pillar = []roots.Env{{Name: "base", Dirs: dirs}}
	}
	return nil
}

// agreed returns an error unless the user confirms the deletions of the plan.
func (o *orchestrating) agreed(ctx context.Context, deletions []string) error {
	if len(deletions) == 0 || o.yes {
		return nil
	}
	if !o.Asks() || o.json {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("the plan deletes %s", strings.Join(deletions, ", ")),
			"look at it with --test, and give --yes to agree"))
	}
	if o.Confirm(ctx, fmt.Sprintf("This deletes %s. Continue?", strings.Join(deletions, ", "))) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return exit.WithCode(exit.Usage, errors.New("nothing was done: the deletions were not confirmed"))
}
