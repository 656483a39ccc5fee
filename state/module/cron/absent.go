package cron

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// absent implements cron.absent. It accepts and ignores the other arguments of cron.present.
type absent struct {
	owner
	Name       string `sls:"name"`
	Identifier string `sls:"identifier"`
	Special    string `sls:"special"`

	Minute    any `sls:"minute"`
	Hour      any `sls:"hour"`
	DayMonth  any `sls:"daymonth"`
	Month     any `sls:"month"`
	DayWeek   any `sls:"dayweek"`
	Comment   any `sls:"comment"`
	Commented any `sls:"commented"`
}

func (a *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	t, _, err := a.read(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	command := strings.TrimSpace(a.Name)
	after, removed := t.remove(command, *identify(a.Identifier, command), a.Special)
	if !removed {
		return module.Diff{Comment: fmt.Sprintf("the crontab of %s has no job %s", a.User, command)}, nil
	}
	return a.diff(after, command, fmt.Sprintf("the job %s would be removed from the crontab of %s", command, a.User)), nil
}

func (a *absent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return a.write(ctx, h, d, fmt.Sprintf("the job %s was removed from the crontab of %s",
		strings.TrimSpace(a.Name), a.User))
}
