// Package cron implements cron.*: it reads and changes the crontabs of users, as the states of cron do.
package cron

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/cron"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// crontab reads and changes the crontabs of users as the states of cron do.
type crontab struct{ *function.Facts }

// Functions returns the functions of cron that templates may call.
func Functions(f *function.Facts) function.Table {
	c := crontab{f}
	return function.Table{
		"cron.list_tab":  function.Of("user", c.list),
		"cron.ls":        function.Of("user", c.list),
		"cron.raw_cron":  function.Of("user", c.raw),
		"cron.get_entry": function.Of("user, identifier=None, cmd=None", c.entry),
	}
}

// Acting returns the functions of cron that change the host.
func Acting(f *function.Facts) function.Table {
	c := crontab{f}
	remove := function.Of("user, cmd, minute=None, hour=None, daymonth=None, month=None, dayweek=None, identifier=None",
		c.remove)
	return function.Table{
		"cron.set_job": function.Of(
			"user, minute, hour, daymonth, month, dayweek, cmd, commented=False, comment=None, identifier=None", c.set),
		"cron.set_special": function.Of("user, special, cmd, commented=False, comment=None, identifier=None", c.setSpecial),
		"cron.set_env":     function.Of("user, name, value=None", c.setVariable),
		"cron.rm_job":      remove,
		"cron.rm":          remove,
		"cron.rm_special":  function.Of("user, cmd, special=None, identifier=None", c.removeSpecial),
		"cron.rm_env":      function.Of("user, name", c.removeVariable),
	}
}

func (c crontab) raw(ctx context.Context, user string) (string, error) {
	if err := c.Host.Crontabs.Allowed("the crontab of " + user); err != nil {
		return "", err
	}
	return c.Host.Crontabs.Read(ctx, user)
}

func (c crontab) list(ctx context.Context, user string) (*value.Map, error) {
	text, err := c.raw(ctx, user)
	if err != nil {
		return nil, err
	}
	return cron.List(text), nil
}

// entry returns the job with an identifier or a command, or False.
func (c crontab) entry(ctx context.Context, user string, id, command *string) (any, error) {
	all, err := c.list(ctx, user)
	if err != nil {
		return nil, err
	}
	for _, item := range all.Value("crons").(*value.List).Items {
		job := item.(*value.Map)
		if id != nil && job.Value("identifier") == *id || id == nil && command != nil && job.Value("cmd") == *command {
			return job, nil
		}
	}
	return false, nil
}

func (c crontab) set(ctx context.Context, user string, minute, hour, day, month, weekday any, command string,
	disabled bool, comment *string, id string) (string, error) {
	return cron.Set(ctx, c.Host, user, cron.Job{Times: timesOf(minute, hour, day, month, weekday), Command: command,
		Comment: comment, Identifier: id, Disabled: disabled})
}

func timesOf(fields ...any) (times [5]string) {
	for i, v := range fields {
		times[i] = value.Str(v)
	}
	return times
}

func (c crontab) setSpecial(ctx context.Context, user, special, command string, disabled bool, comment *string,
	id string) (string, error) {
	if !strings.HasPrefix(special, "@") {
		return "", fmt.Errorf("%q is not a special time; those begin with @, such as @daily", special)
	}
	return cron.Set(ctx, c.Host, user, cron.Job{Special: special, Command: command, Comment: comment, Identifier: id,
		Disabled: disabled})
}

func (c crontab) remove(ctx context.Context, user, command string, minute, hour, day, month, weekday any,
	id string) (string, error) {
	if id == "" && !(minute == nil && hour == nil && day == nil && month == nil && weekday == nil) {
		return c.removeAt(ctx, user, command, []any{minute, hour, day, month, weekday})
	}
	return cron.Remove(ctx, c.Host, user, cron.Job{Command: command, Identifier: id})
}

// removeAt removes a job if it runs at the given times.
func (c crontab) removeAt(ctx context.Context, user, command string, wanted []any) (string, error) {
	v, err := c.entry(ctx, user, nil, &command)
	job, ok := v.(*value.Map)
	if err != nil || !ok {
		return "absent", err
	}
	for i, name := range []string{"minute", "hour", "daymonth", "month", "dayweek"} {
		if wanted[i] != nil && value.Str(wanted[i]) != job.Value(name) {
			return "absent", nil
		}
	}
	id, _ := job.Value("identifier").(string)
	return cron.Remove(ctx, c.Host, user, cron.Job{Command: command, Identifier: id})
}

func (c crontab) removeSpecial(ctx context.Context, user, command, special, id string) (string, error) {
	all, err := c.list(ctx, user)
	if err != nil {
		return "", err
	}
	for _, item := range all.Value("special").(*value.List).Items {
		if job := item.(*value.Map); special == "" && job.Value("cmd") == command {
			special = value.Str(job.Value("spec"))
		}
	}
	if special == "" {
		return "absent", nil
	}
	return cron.Remove(ctx, c.Host, user, cron.Job{Command: command, Special: special, Identifier: id})
}

func (c crontab) setVariable(ctx context.Context, user, name, text string) (string, error) {
	return cron.SetVariable(ctx, c.Host, user, name, text)
}

func (c crontab) removeVariable(ctx context.Context, user, name string) (string, error) {
	return cron.RemoveVariable(ctx, c.Host, user, name)
}
