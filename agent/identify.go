package agent

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

// Identify says who the host is. What was given on the command line is remembered in the ledger by
// whoever saves it.
func (a *Agent) Identify(ctx context.Context, given grains.Identity, known ledger.Host) (grains.Identity, error) {
	convention, err := grains.NewConvention(a.Config.Convention)
	if err != nil {
		return grains.Identity{}, exit.WithCode(exit.Usage, err)
	}
	hostname, err := a.treeHostname()
	if err != nil {
		return grains.Identity{}, err
	}
	request := grains.Request{
		Hostname: hostname, Convention: convention, Given: given,
		Configured: a.configured(known), OnCloud: a.OnCloud,
	}
	if a.Config.Metadata {
		request.Cloud = a.Cloud
	}
	id, _, err := grains.Decide(ctx, request)
	return id, exit.WithCode(exit.Usage, err)
}

// configured is what the configuration says, and without it what the host was told before.
func (a *Agent) configured(known ledger.Host) grains.Identity {
	c := a.Config
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

// treeHostname is the name of the host that the tree belongs to: a relocated tree may have its own.
func (a *Agent) treeHostname() (string, error) {
	if a.Layout.Relocated() {
		data, _, err := walk.Read(a.Layout.Path("/etc/hostname"))
		if name := strings.TrimSpace(string(data)); err != nil || name != "" {
			return name, err
		}
	}
	name, err := a.hostname()
	if err != nil {
		return "", fmt.Errorf("reading the hostname: %w", err)
	}
	return name, nil
}

// Grains collects everything that is known about the host. baseGrains is base's directory of
// programs that print grains; those of more win over it. Programs that failed are warnings.
func (a *Agent) Grains(ctx context.Context, id grains.Identity, baseGrains string, more ...string) (all *value.Map, warnings []error, err error) {
	root := ""
	if a.Layout.Relocated() {
		root = a.Layout.Root
	}
	hostname, err := a.treeHostname()
	if err != nil {
		return nil, nil, err
	}
	facts, err := grains.Collect(ctx, grains.Source{Root: root, ID: hostname})
	if err != nil {
		return nil, nil, err
	}
	misplaced := a.misplacedConfiguration()
	static, err := custom.ReadFile(a.Layout.StaticGrains())
	if err != nil && !errors.Is(err, os.ErrNotExist) && misplaced == nil && !a.skips(err) {
		return nil, nil, exit.WithCode(exit.Usage, err)
	}
	options := custom.Options{Dirs: append(a.grainDirs(baseGrains), more...), Root: root, Identity: id}
	switch {
	case a.Chroot:
		options.Chroot = true
	case a.Layout.Relocated():
		options.Skip = "the root is not the running system"
	}
	found := custom.Load(ctx, options)
	if misplaced != nil {
		found.Warnings = append(found.Warnings, misplaced)
	}
	if err := errors.Join(slices.DeleteFunc(found.Unreadable, a.skips)...); err != nil {
		return nil, nil, exit.WithCode(exit.Usage, diag.WithHint(err, "make it readable by the agent, or remove it"))
	}
	warnings = found.Warnings
	for _, program := range found.Skipped {
		warnings = append(warnings, fmt.Errorf("skipped %s: it would run on the running system", program))
	}
	return grains.Layers{Core: facts.All(ctx), Static: static, Custom: found.Grains, Identity: id}.Merge(), warnings, nil
}

func (a *Agent) grainDirs(base string) []string {
	var dirs []string
	if !walk.Misplaced(a.Layout.Configuration()) {
		dirs = append(dirs, filepath.Join(a.Layout.Configuration(), "grains.d"))
	}
	if base != "" {
		dirs = append([]string{filepath.Join(base, "grains")}, dirs...)
	}
	return dirs
}
