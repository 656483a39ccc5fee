package sshauth

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// manage implements ssh_auth.manage: it sets the keys of a user and removes all others.
type manage struct {
	arguments
	Keys []string `sls:"ssh_keys,required"`

	obstacle error // the reason why Apply would fail now
}

func (m *manage) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	keys, err := m.wanted(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	plan, err := m.plan(h, keys)
	m.obstacle = plan.obstacle
	if err != nil {
		return module.Diff{}, err
	}
	wanted := map[string]bool{}
	for _, k := range keys {
		wanted[k.Text] = true
	}
	changes, gone := value.NewMap(), map[string]bool{}
	for _, k := range m.target.file.keys {
		if k.Text != "" && !wanted[k.Text] {
			gone[k.Text] = true
			changes.Set(k.Text, "Key removed")
		}
	}
	for _, k := range plan.put {
		changes.Set(k.Text, plan.words[k.Text])
	}
	if changes.Len() == 0 && plan.obstacle == nil {
		return module.Diff{Comment: fmt.Sprintf("user %s has exactly the declared keys (%d)", m.User, len(keys))}, nil
	}
	m.text = m.target.file.with(plan.put, gone)
	return plan.diff(changes, fmt.Sprintf("of the keys of user %s %d would change and %d would be removed", m.User,
		len(plan.put), len(gone))), nil
}

// wanted returns the declared keys and those of the source.
func (m *manage) wanted(ctx context.Context, h *host.Host) ([]sshkey.Key, error) {
	var keys []sshkey.Key
	for _, text := range m.Keys {
		k, err := m.key(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if m.Source == "" {
		return keys, nil
	}
	more, err := m.sourceKeys(ctx, h)
	return append(keys, more...), err
}

func (m *manage) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if m.obstacle != nil {
		return module.Report{}, m.obstacle
	}
	warnings, err := m.write(h)
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("%s has exactly the declared keys (%d)",
		m.target.path, len(m.Keys)), Warnings: warnings}, nil
}
