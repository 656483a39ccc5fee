package cron

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// present implements cron.present.
type present struct {
	owner
	Name       string  `sls:"name"`
	Minute     string  `sls:"minute"`
	Hour       string  `sls:"hour"`
	DayMonth   string  `sls:"daymonth"`
	Month      string  `sls:"month"`
	DayWeek    string  `sls:"dayweek"`
	Comment    *string `sls:"comment"`
	Commented  bool    `sls:"commented"` // the job is commented out
	Identifier string  `sls:"identifier"`
	Special    string  `sls:"special"`
}

func (p *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	wanted, err := p.job()
	if err != nil {
		return module.Diff{}, err
	}
	t, _, err := p.read(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	after, word := t.set(wanted)
	switch word {
	case same:
		return module.Diff{Comment: fmt.Sprintf("the job %s is in the crontab of %s", wanted.command, p.User)}, nil
	case added:
		return p.diff(after, wanted.command,
			fmt.Sprintf("the job %s would be added to the crontab of %s", wanted.command, p.User)), nil
	}
	return p.diff(after, wanted.command,
		fmt.Sprintf("the job %s would change in the crontab of %s", wanted.command, p.User)), nil
}

// job returns the declared job.
func (p *present) job() (job, error) {
	j := job{command: strings.TrimSpace(p.Name), disabled: p.Commented, special: strings.TrimSpace(p.Special)}
	j.id = identify(p.Identifier, j.command)
	if p.Comment != nil {
		text := lineBreaks(*p.Comment)
		j.comment = &text
	}
	for i, text := range []string{p.Minute, p.Hour, p.DayMonth, p.Month, p.DayWeek} {
		j.times[i] = strings.ToLower(strings.TrimSpace(text))
		if strings.ContainsAny(j.times[i], " \t\n\r#@=") || j.times[i] == "" {
			return j, fmt.Errorf("%q is not a valid time for a crontab", text)
		}
	}
	return j, j.valid()
}

// valid returns an error for a job that a crontab cannot hold.
func (j job) valid() error {
	if j.special != "" && (j.special[0] != '@' || len(strings.Fields(j.special)) != 1) {
		return diag.Argument.Hint(fmt.Errorf("%q is not a special time", j.special),
			"use one such as '@daily', in quotes, since YAML has another use for the @")
	}
	if j.command == "" {
		return errors.New("the job has no command")
	}
	if strings.ContainsAny(j.command+orEmpty(j.id)+j.special, "\n\r") {
		return diag.Argument.Hint(fmt.Errorf("the job %q has a line break, and a crontab has one line for a job", j.command),
			"put the commands into a script")
	}
	return nil
}

// identify returns the identifier of a job: the given one, or by default its command.
func identify(given, command string) *string {
	if given == "" || given == "False" {
		given = command
	}
	return &given
}

func (p *present) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return p.write(ctx, h, d, fmt.Sprintf("the job %s is now in the crontab of %s", strings.TrimSpace(p.Name), p.User))
}
