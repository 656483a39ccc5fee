package cron

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// file implements cron.file: it installs a whole crontab from a file.
type file struct {
	owner
	Name     string     `sls:"name"` // URL of the source
	Hash     string     `sls:"source_hash"`
	HashName string     `sls:"source_hash_name"`
	Template string     `sls:"template"`
	Context  *value.Map `sls:"context"`
	Defaults *value.Map `sls:"defaults"`
	Replace  bool       `sls:"replace"` // also replace an existing crontab
	Backup   any        `sls:"backup"`  // no effect: there is no place for a backup in cron's directory
	Env      string     `sls:"__env__"`

	sources Sources
}

func (f *file) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	_, before, err := f.read(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if f.obstacle != nil {
		return module.Diff{}, f.obstacle
	}
	if !f.Replace && before != "" {
		return module.Diff{Comment: fmt.Sprintf("user %s has a crontab, and it is not to be replaced", f.User)}, nil
	}
	ctx = host.To(ctx, host.Recipient{UID: f.uid, What: "the crontab of " + f.User})
	after, err := f.sources.Rendered(ctx, Source{
		URL: f.Name, Env: f.Env, Hash: f.Hash, HashName: f.HashName, Template: f.Template,
		Context: f.Context, Defaults: f.Defaults,
	})
	if err != nil {
		return module.Diff{}, err
	}
	f.text = string(after)
	if f.text != "" && !strings.HasSuffix(f.text, "\n") {
		return module.Diff{}, diag.Argument.Hint(
			fmt.Errorf("%s does not end with a line break, and cron refuses such a crontab",
				f.Name), "end its last line")
	}
	// The crontab that Salt reads always ends with a newline, even if it does not exist.
	if !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	if before == f.text {
		return module.Diff{Comment: fmt.Sprintf("the crontab of %s is as in %s", f.User, f.Name)}, nil
	}
	changes, err := f.changes(h, before)
	return module.Diff{Changes: changes, Planned: value.NewMap(),
		Comment: fmt.Sprintf("the crontab of %s would become that of %s", f.User, f.Name)}, err
}

// changes returns the difference and, like Salt, the user and group if the user is not root.
func (f *file) changes(h *host.Host, before string) (*value.Map, error) {
	changes := value.NewMap("diff", f.sources.Diff(before, f.text))
	if f.User == "root" {
		return changes, nil
	}
	groups, err := h.Accounts.GroupsOf(f.User)
	changes.Set("user", f.User)
	if len(groups) > 0 {
		changes.Set("group", groups[0])
	}
	return changes, err
}

func (f *file) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return f.write(ctx, h, d, fmt.Sprintf("the crontab of %s is that of %s", f.User, f.Name))
}
