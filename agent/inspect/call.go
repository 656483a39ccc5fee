package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Call calls a function. It holds the lock of the host while states change the host.
func (h *Host) Call(ctx context.Context, o *Opened, name string, args []any, kwargs *value.Map) (session.Answer,
	error) {
	if err := o.findable(name); err != nil {
		return session.Answer{}, err
	}
	if session.ReadsStates(name) && o.unknown != nil {
		return session.Answer{}, o.unknown
	}
	if session.Changes(name) && !o.Test && !value.Truth(kwargs.Value("test")) && !value.Truth(kwargs.Value("concurrent")) {
		held, err := h.lockForCall(ctx, o, name, value.Truth(kwargs.Value("queue")))
		if err != nil && !errors.Is(err, os.ErrPermission) {
			return session.Answer{}, err
		}
		if err == nil {
			defer func() { _ = held.Release() }()
		}
	}
	return o.Session.Call(ctx, name, args, kwargs, o.Observer)
}

// lockForCall takes the lock of the host. A call that queues waits for the run that holds it.
func (h *Host) lockForCall(ctx context.Context, o *Opened, name string, queue bool) (*records.Exclusive, error) {
	for {
		held, err := h.Lock(ctx, "call "+name)
		var other *lock.Held
		if !queue || h.Within != "" || !errors.As(err, &other) {
			return held, err
		}
		say := func(format string, args ...any) { o.Notes = append(o.Notes, fmt.Sprintf(format, args...)) }
		if err := h.WaitUntilIdle(ctx, say); err != nil {
			return nil, err
		}
	}
}

// runningNow returns the run that holds the lock, in the form of state.running.
func (h *Host) runningNow() []string {
	holder, busy := lock.Taken(h.Layout.Lock())
	switch {
	case !busy:
		return nil
	case holder.PID == 0:
		return []string{"another run is under way"}
	}
	return []string{fmt.Sprintf("%q is running as PID %d since %s", holder.Command, holder.PID,
		holder.Since.Format(time.RFC3339))}
}

// findable checks that functions which read SLS files have a directory to read them from.
func (o *Opened) findable(name string) error {
	if !session.ReadsStates(name) {
		return nil
	}
	if len(o.States) == 0 {
		return exit.WithCode(exit.Usage,
			diag.Undeployed.Hint(errors.New("nothing is deployed on this host, and no state files were named"),
				"name them: --states DIR, or -c DIR with a minion file"))
	}
	var dirs []string
	for _, env := range o.States {
		dirs = append(dirs, env.Dirs...)
	}
	there := func(dir string) bool {
		info, err := o.Session.Trees.Stat(dir)
		return err == nil && info.IsDir()
	}
	if slices.ContainsFunc(dirs, there) {
		return nil
	}
	var problems diag.List
	problems.Add(o.statesPos, "file_roots: none of the directories exists: %s", strings.Join(dirs, ", ")).
		WithHint(diag.Config, "create one, or name the state files with --states DIR")
	return problems
}

// WhyStep explains the steps of the highstate that a word means.
func (h *Host) WhyStep(ctx context.Context, t Trees, word string) ([]session.Explanation, error) {
	opened, err := h.Session(ctx, t, false)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if err := opened.findable("state.highstate"); err != nil {
		return nil, err
	}
	return opened.Explain(ctx, word)
}

// callMode returns how much output a call prints for each state. A person who calls a function is shown the changes;
// the setting in agent.yaml is for runs by the timer.
func (h *Host) callMode() string {
	if h.Config.StateOutput == "mixed" {
		return "changes"
	}
	return h.Config.StateOutput
}
