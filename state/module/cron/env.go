package cron

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// envPresent implements cron.env_present.
type envPresent struct {
	owner
	Name  string `sls:"name"`
	Value string `sls:"value"`
}

// nothing is the notation of a variable without a value.
const nothing = `""`

func (e *envPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if strings.ContainsAny(e.Name, "= \t") || e.Name == "" || strings.ContainsAny(e.Name+e.Value, "\n\r") {
		return module.Diff{}, fmt.Errorf("%q is not a variable that a crontab can hold", e.Name)
	}
	t, _, err := e.read(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	v := e.Value
	if v == "" {
		v = nothing
	}
	after, word := t.setVariable(e.Name, v)
	if word == same {
		return module.Diff{Comment: fmt.Sprintf("the crontab of %s has %s", e.User, e.Name)}, nil
	}
	return e.diff(after, e.Name, fmt.Sprintf("%s would be set in the crontab of %s", e.Name, e.User)), nil
}

func (e *envPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return e.write(ctx, h, d, fmt.Sprintf("%s was set in the crontab of %s", e.Name, e.User))
}

// envAbsent implements cron.env_absent.
type envAbsent struct {
	owner
	Name string `sls:"name"`
}

func (e *envAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	t, _, err := e.read(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	name := strings.TrimSpace(e.Name)
	after, removed := t.removeVariable(name)
	if !removed {
		return module.Diff{Comment: fmt.Sprintf("the crontab of %s has no %s", e.User, name)}, nil
	}
	return e.diff(after, name, fmt.Sprintf("%s would be removed from the crontab of %s", name, e.User)), nil
}

func (e *envAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return e.write(ctx, h, d, fmt.Sprintf("%s was removed from the crontab of %s", strings.TrimSpace(e.Name), e.User))
}
