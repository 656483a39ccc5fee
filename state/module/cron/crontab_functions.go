package cron

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// List returns the content of a crontab in the form of Salt's cron.list_tab: the lines above the marker (pre),
// jobs, jobs at special times, and variables.
func List(text string) *value.Map {
	t := parse(text)
	variables := value.NewList()
	for _, v := range t.variables {
		variables.Append(value.NewMap("name", v.name, "value", v.value))
	}
	return value.NewMap("pre", value.Strings(t.above...), "crons", described(t.jobs),
		"special", described(t.specials), "env", variables)
}

func described(jobs []job) *value.List {
	list := value.NewList()
	for _, j := range jobs {
		m := value.NewMap()
		if j.special != "" {
			m.Set("spec", j.special)
		} else {
			for i, name := range []string{"minute", "hour", "daymonth", "month", "dayweek"} {
				m.Set(name, j.times[i])
			}
		}
		m.Set("identifier", pointed(j.id))
		m.Set("cmd", j.command)
		m.Set("comment", pointed(j.comment))
		m.Set("commented", j.disabled)
		list.Append(m)
	}
	return list
}

func pointed(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

// Job is a job as the cron functions name it. Identifier is "" for a job that is matched by its command.
type Job struct {
	Times      [5]string // minute, hour, day of the month, month, day of the week
	Special    string    // such as @daily, instead of Times
	Command    string
	Comment    *string
	Identifier string
	Disabled   bool
}

func (j Job) job() (job, error) {
	p := present{Name: j.Command, Minute: j.Times[0], Hour: j.Times[1], DayMonth: j.Times[2],
		Month: j.Times[3], DayWeek: j.Times[4],
		Comment: j.Comment, Commented: j.Disabled, Identifier: j.Identifier, Special: j.Special}
	if j.Special != "" {
		p.Minute, p.Hour, p.DayMonth, p.Month, p.DayWeek = "*", "*", "*", "*", "*"
	}
	made, err := p.job()
	if j.Identifier == "" {
		made.id = nil
	}
	return made, err
}

// Set adds or changes a job in a user's crontab. It returns new, updated or present.
func Set(ctx context.Context, h *host.Host, user string, j Job) (string, error) {
	wanted, err := j.job()
	if err != nil {
		return "", err
	}
	return edit(ctx, h, user, func(t *tab) (*tab, string) { return t.set(wanted) })
}

// Remove removes a job. It returns removed or absent.
func Remove(ctx context.Context, h *host.Host, user string, j Job) (string, error) {
	return edit(ctx, h, user, func(t *tab) (*tab, string) {
		after, removed := t.remove(j.Command, j.Identifier, j.Special)
		return after, gone(removed)
	})
}

// SetVariable sets a variable. It returns new, updated or present.
func SetVariable(ctx context.Context, h *host.Host, user, name, text string) (string, error) {
	return edit(ctx, h, user, func(t *tab) (*tab, string) { return t.setVariable(name, text) })
}

// RemoveVariable removes a variable. It returns removed or absent.
func RemoveVariable(ctx context.Context, h *host.Host, user, name string) (string, error) {
	return edit(ctx, h, user, func(t *tab) (*tab, string) {
		after, removed := t.removeVariable(name)
		return after, gone(removed)
	})
}

const absentWord = "absent"

func gone(removed bool) string {
	if removed {
		return "removed"
	}
	return absentWord
}

// edit applies a change to a user's crontab and writes it if it differs.
func edit(ctx context.Context, h *host.Host, user string, change func(*tab) (*tab, string)) (string, error) {
	o := owner{User: user, tabs: &tabs{parsed: map[string]parsedTab{}}}
	t, _, err := o.read(ctx, h)
	if err == nil {
		err = o.obstacle
	}
	if err != nil {
		return "", err
	}
	after, word := change(t)
	if word == same || word == absentWord {
		return word, nil
	}
	return word, h.Crontabs.Write(ctx, user, after.String())
}
