package sshauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements ssh_auth.present.
type present struct {
	arguments
	obstacle error // the reason why Apply would fail now
}

func (p *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	keys, err := p.keys(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	plan, err := p.plan(h, keys)
	p.obstacle = plan.obstacle
	if err != nil {
		return module.Diff{}, err
	}
	if len(plan.put) == 0 && plan.obstacle == nil {
		return module.Diff{Comment: fmt.Sprintf("user %s has %s", p.User, labels(keys))}, nil
	}
	p.text = p.target.file.with(plan.put, nil)
	changes := value.NewMap(p.label(keys), plan.word)
	return plan.diff(changes, fmt.Sprintf("user %s would get %s", p.User, labels(keys))), nil
}

// label returns the name of a change: the key, or the name of the state if it has a source.
func (p *present) label(keys []sshkey.Key) string {
	if p.Source != "" {
		return p.Name
	}
	return keys[0].Text
}

func (p *present) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if p.obstacle != nil {
		return module.Report{}, p.obstacle
	}
	warnings, err := p.write(h)
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("user %s got keys in %s", p.User, p.target.path),
		Warnings: warnings}, nil
}

// plan holds the required changes of keys.
type plan struct {
	put      []sshkey.Key      // the keys that differ
	words    map[string]string // results by key
	word     string            // the common result
	obstacle error             // the reason why Apply would fail now
}

// plan compares keys with the user's file. A missing user or home directory, which an earlier state of the run
// may create, is an obstacle instead of an error. So is an invalid key, as Salt validates keys only when it
// writes them.
func (a *arguments) plan(h *host.Host, keys []sshkey.Key) (plan, error) {
	p := plan{words: map[string]string{}}
	for _, k := range keys {
		p.obstacle = errors.Join(p.obstacle, k.Valid())
	}
	err := a.find(h)
	switch {
	case errors.Is(err, owned.ErrNoUser):
		// Below a root no user is created, so the key is skipped like its user.
		if skipped := h.Accounts.Allowed("user " + a.User); skipped != nil {
			return p, skipped
		}
		p.obstacle = err
		a.target.file = parseFile("")
	case err != nil:
		return p, err
	}
	for _, k := range keys {
		word := a.target.file.differs(k)
		if word == "" {
			continue
		}
		p.put = append(p.put, k)
		p.words[k.Text] = word
		if p.word != added {
			p.word = word
		}
	}
	if len(p.put) > 0 && a.target.path != "" {
		p.obstacle = errors.Join(p.obstacle, a.target.home(h))
	}
	return p, nil
}

// diff returns the module.Diff of a plan. Like Salt's, a dry run reports only the comment.
func (p plan) diff(changes *value.Map, comment string) module.Diff {
	d := module.Diff{Changes: changes, Planned: value.NewMap(), Comment: comment}
	if p.obstacle != nil {
		d.Missing = append(d.Missing, p.obstacle)
	}
	return d
}

// labels returns a description of keys for messages.
func labels(keys []sshkey.Key) string {
	if len(keys) > 1 {
		return diag.Count(len(keys), "key")
	}
	return keys[0].Label()
}
