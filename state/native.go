package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Native is this project's own engine.
type Native struct{}

// SessionFor returns the session in which a request converges.
func SessionFor(r Request) *session.Session { return session.New(SettingsFor(r)) }

// SettingsFor returns the settings of the session in which a request converges.
func SettingsFor(r Request) session.Settings {
	id, _ := r.Grains.Value("id").(string)
	options := value.NewMap("strict_arguments", r.StrictArguments)
	if r.Options != nil {
		options.Update(r.Options)
	}
	return session.Settings{
		Host: r.Host, Tables: families.Tables{}, ID: id, Grains: r.Grains,
		States:   []roots.Env{{Name: "base", Dirs: r.StateRoots}},
		Pillar:   []roots.Env{{Name: "base", Dirs: r.PillarRoots}},
		Releases: []string{r.Service, r.Base},
		TopRoots: r.TopRoots, Override: r.Override, Redactor: r.Redactor, Vars: r.Vars,
		Options: options,
		Remote:  r.Remote, Buckets: r.Buckets, Log: r.Log, Version: r.Version,
		Declare: func(high *compile.High) error { return declare(high, r.Templates) },
		Test:    r.Test, Failhard: r.Failhard, Grace: r.Grace, Strict: true,
	}
}

// Compile renders the SLS files that the top file assigns to this host, and orders their steps. A step that is certain
// to fail is an error here, before anything changes.
func (Native) Compile(ctx context.Context, r Request) (Program, error) {
	settings := SettingsFor(r)
	settings.Until = ctx
	return native(ctx, session.New(settings))
}

type nativeProgram struct {
	session *session.Session
	program *compile.Program
}

// Apply runs the states.
func (p *nativeProgram) Apply(ctx context.Context, o exec.Observer) (Outcome, error) {
	defer p.session.Close()
	results := p.session.Run(ctx, p.program, o).All()
	err := failure(results, failed)
	switch {
	case ctx.Err() == nil:
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = ctx.Err()
	case err == nil: // the time ended between two steps
		err = overdue(ctx)
	}
	return Outcome{Results: results}, err
}

// overdue returns the error of a converge that took too long.
func overdue(ctx context.Context) error {
	return diag.Timeout.Hint(fmt.Errorf("the converge was ended: %w", context.Cause(ctx)),
		"see which states take so long, or raise converge.timeout in agent.yaml")
}
