// Package cron holds cron.present, cron.absent, cron.file, cron.env_present and cron.env_absent: the
// jobs users have with cron.
//
// A crontab is shared by the people who edit it and the states that manage it, so it has a line in it
// below which all belongs to the states. What is above stays as it is. Below, each job is known by
// an identifier in the comment above it, which lets a state find its job again after its time or even
// its command changed.
//
// The text below the line is written exactly as Salt writes it, down to the order of lines: a job that
// changes goes to the end. That way the two can take turns on a host, and neither sees a change where
// the other saw none.
package cron

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources gives what cron.file needs from outside.
type Sources interface {
	// Rendered gives the text of a source, checked against its hash and rendered if it is a template.
	Rendered(ctx context.Context, s Source) ([]byte, error)
	// Diff shows how two texts differ, in the form in which file states show it.
	Diff(before, after string) string
}

// Source is a file that an SLS file names by URL.
type Source struct {
	URL, Env       string
	Hash, HashName string
	Template       string // the engine's name, "" for none
	Context        *value.Map
	Defaults       *value.Map
}

// Functions are the functions of cron.
func Functions(sources Sources) module.Table {
	tabs := &tabs{parsed: map[string]parsedTab{}}
	owner := func() owner { return owner{User: "root", tabs: tabs} }
	return module.Table{
		"present": func() module.Resource {
			return &present{owner: owner(), Minute: "*", Hour: "*", DayMonth: "*", Month: "*", DayWeek: "*"}
		},
		"absent":      func() module.Resource { return &absent{owner: owner()} },
		"file":        func() module.Resource { return &file{owner: owner(), Replace: true, sources: sources} },
		"env_present": func() module.Resource { return &envPresent{owner: owner()} },
		"env_absent":  func() module.Resource { return &envAbsent{owner: owner()} },
	}
}

// owner is whose crontab a state is about.
type owner struct {
	User string `sls:"user"`

	tabs     *tabs
	uid      int    // 0 also for a user who is not there
	text     string // what Check wants the crontab to be
	obstacle error  // why Apply will fail, as things are
}

// read gives the crontab, and notes a user who is not there: an earlier state of the run may be about
// to make it, so a dry run goes on and warns.
func (o *owner) read(ctx context.Context, h *host.Host) (*tab, string, error) {
	if err := h.Crontabs.Allowed("the crontab of " + o.User); err != nil {
		return nil, "", err
	}
	u, ok, err := h.Accounts.User(o.User)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		err := diag.WithHint(fmt.Errorf("user %s does not exist", o.User),
			"make it in a user.present state that this one requires")
		o.obstacle = host.Lacking(err, host.AUser, o.User)
	}
	o.uid = u.UID
	text, err := h.Crontabs.Read(ctx, o.User)
	if err != nil {
		return nil, "", err
	}
	return o.tabs.parse(h, o.User, text), text, nil
}

// diff is how a change of the crontab is reported. A dry run shows only the comment, as Salt's does.
func (o *owner) diff(changed *tab, name, comment string) module.Diff {
	o.text = changed.String()
	d := module.Diff{Changes: value.NewMap(o.User, name), Planned: value.NewMap(), Comment: comment}
	o.warn(&d)
	return d
}

func (o *owner) warn(d *module.Diff) {
	if o.obstacle != nil {
		d.Lacks = append(d.Lacks, o.obstacle)
	}
}

// write gives the crontab the text that Check wants.
func (o *owner) write(ctx context.Context, h *host.Host, d module.Diff, comment string) (module.Report, error) {
	if o.obstacle != nil {
		return module.Report{}, o.obstacle
	}
	if err := h.Crontabs.Write(ctx, o.User, o.text); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: comment}, nil
}
