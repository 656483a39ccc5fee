// Package cron implements cron.present, cron.file and the other cron states, which manage the crontabs of
// users.
//
// People edit a crontab as well, so the states only manage the part below a marker line and leave the part
// above it unchanged. An identifier in the comment above a job lets a state find its job after its time or
// command has changed.
//
// The managed part is written exactly like Salt writes it, including the order of lines: a job that changes
// moves to the end. Salt and the agent can therefore manage the same host in turn, and neither sees a change
// that the other does not.
package cron

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources gives cron.file access to files outside of the host.
type Sources interface {
	// Rendered returns the content of a source, verified against its hash and rendered if it is a template.
	Rendered(ctx context.Context, s Source) ([]byte, error)
	// Diff returns the difference of two texts in the form of the file states.
	Diff(before, after string) string
}

// Source is a file that a state names by URL.
type Source struct {
	URL, Env       string
	Hash, HashName string
	Template       string // the name of the engine, "" for none
	Context        *value.Map
	Defaults       *value.Map
}

// Functions returns the functions of cron.
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

// owner holds the user argument and the state of that user's crontab.
type owner struct {
	User string `sls:"user"`

	tabs     *tabs
	uid      int    // 0 also if the user does not exist
	text     string // the new crontab, set by Check
	obstacle error  // the reason why Apply would fail now
}

// read returns the crontab, parsed and as text. A user who does not exist is recorded as an obstacle and is not
// an error, since an earlier state of the same run may create it.
func (o *owner) read(ctx context.Context, h *host.Host) (*tab, string, error) {
	if err := h.Crontabs.Allowed("the crontab of " + o.User); err != nil {
		return nil, "", err
	}
	u, ok, err := h.Accounts.User(o.User)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		err := diag.Prerequisite.Hint(fmt.Errorf("user %s does not exist", o.User),
			"make it in a user.present state that this one requires")
		o.obstacle = host.WithMissing(err, host.AUser, o.User)
	}
	o.uid = u.UID
	text, err := h.Crontabs.Read(ctx, o.User)
	if err != nil {
		return nil, "", err
	}
	return o.tabs.parse(h, o.User, text), text, nil
}

// diff returns the module.Diff for a changed crontab. Like Salt's, a dry run reports only the comment.
func (o *owner) diff(changed *tab, name, comment string) module.Diff {
	o.text = changed.String()
	d := module.Diff{Changes: value.NewMap(o.User, name), Planned: value.NewMap(), Comment: comment}
	o.warn(&d)
	return d
}

func (o *owner) warn(d *module.Diff) {
	if o.obstacle != nil {
		d.Missing = append(d.Missing, o.obstacle)
	}
}

// write writes the crontab that Check computed.
func (o *owner) write(ctx context.Context, h *host.Host, d module.Diff, comment string) (module.Report, error) {
	if o.obstacle != nil {
		return module.Report{}, o.obstacle
	}
	if err := h.Crontabs.Write(ctx, o.User, o.text); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: comment}, nil
}
