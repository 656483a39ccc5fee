// Package event implements event.send, event.fire and event.fire_master. A host without a master has no event bus, so
// the events go to a program of the operator: the option event_command, which is a setting of agent.yaml.
package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// option is the option with the program and its arguments.
const option = "event_command"

// programTime is the maximum time that the program takes for an event.
const programTime = time.Minute

type events struct{ *function.Facts }

// Acting returns the functions of event.
func Acting(f *function.Facts) function.Table {
	e := events{f}
	return function.Table{
		"event.send": function.Of("tag, data=None, preload=None, with_env=False, with_grains=False, with_pillar=False, "+
			"with_env_opts=False, **kwargs", e.send),
		"event.fire":        function.Of("data, tag", e.fire),
		"event.fire_master": function.Of("data, tag, preload=None", e.fire),
	}
}

// send sends an event whose data are those of the call, and what its arguments add. The environment is never a part of
// it, since that of the agent may have credentials.
func (e events) send(ctx context.Context, a function.Arguments) (any, error) {
	data := value.NewMap()
	given, is := a.Value("data").(*value.Map)
	if !is && a.Value("data") != nil {
		data.Set("data", a.Value("data"))
	}
	more, _ := a.Value("kwargs").(*value.Map)
	for _, part := range []struct {
		name, argument string
		all            *value.Map
	}{{"grains", "with_grains", e.Grains}, {"pillar", "with_pillar", e.Pillar()}} {
		if with := a.Value(part.argument); value.Truth(with) {
			data.Set(part.name, subset(part.all, with))
		}
	}
	if value.Truth(a.Value("with_env_opts")) {
		data.Set("saltenv", e.Options.Value("saltenv"))
		data.Set("pillarenv", e.Options.Value("pillarenv"))
	}
	for key, v := range more.All() {
		if !strings.HasPrefix(value.Str(key), "__") {
			data.Set(value.Str(key), v)
		}
	}
	data.Update(given)
	return e.pass(ctx, value.Str(a.Value("tag")), data)
}

// subset returns all values, or those that a list names.
func subset(all *value.Map, names any) *value.Map {
	list, is := names.(*value.List)
	if !is {
		return all
	}
	some := value.NewMap()
	for _, name := range list.Items {
		if v, has := all.Get(value.Str(name)); has {
			some.Set(value.Str(name), v)
		}
	}
	return some
}

func (e events) fire(ctx context.Context, a function.Arguments) (any, error) {
	return e.pass(ctx, value.Str(a.Value("tag")), a.Value("data"))
}

// pass runs the program, which reads the event as a line of JSON.
func (e events) pass(ctx context.Context, tag string, data any) (any, error) {
	argv, err := function.Texts(e.Options.Value(option))
	if err != nil || len(argv) == 0 {
		return nil, diag.Notify.Hint(errors.New("without a master, no program receives events"),
			"set %s in agent.yaml, such as %s: [/usr/local/bin/on-event], or in the minion file of `call -c`", option, option)
	}
	if !strings.HasPrefix(argv[0], "/") {
		return nil, diag.Notify.Hint(fmt.Errorf("%s names %q, which is not a whole path", option, argv[0]),
			"write where the program is, such as /usr/local/bin/%s", argv[0])
	}
	now := time.Now
	if e.Now != nil {
		now = e.Now
	}
	line, err := json.Marshal(value.NewMap("tag", tag, "data", value.Printable(data), "id", e.ID, "_stamp",
		now().UTC().Format("2006-01-02T15:04:05.000000")))
	if err != nil {
		return nil, fmt.Errorf("the data of %s: %w", tag, err)
	}
	out, err := e.Host.Commands.Run(ctx, host.Command{Argv: argv, Stdin: string(line) + "\n", Limit: programTime,
		Env: process.Clean("CORPUS_EVENT_TAG=" + strings.ReplaceAll(tag, "\x00", "")), Paths: argv[:1]})
	switch {
	case err != nil:
		return nil, err
	case out.TimedOut:
		return nil, fmt.Errorf("%s did not end within %s", argv[0], programTime)
	case out.Code != 0:
		return nil, fmt.Errorf("%s ended with code %d: %s", argv[0], out.Code,
			function.LastLine(strings.TrimSpace(out.Stderr)))
	}
	return true, nil
}
