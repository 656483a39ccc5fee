package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	functions "github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// guarded evaluates onlyif, unless and creates. If one of them keeps the step from running, or cannot be evaluated, the
// result is complete and guarded returns true.
func (r *Runner) guarded(ctx context.Context, s *compile.Step, result *Result) bool {
	held, err := r.ask(ctx, s)
	switch {
	case err != nil:
		result.fail(err, nil)
	case held != "":
		result.Outcome, result.Comment, result.SkipWatch = Succeeded, held, true
	default:
		return false
	}
	return true
}

// ask evaluates the guards of a step. It returns the reason why one of them keeps the step from running, or "".
func (r *Runner) ask(ctx context.Context, s *compile.Step) (held string, err error) {
	guards := []struct {
		key string
		ask func(context.Context, *compile.Step, any) (string, error)
	}{{"onlyif", r.onlyif}, {"unless", r.unless}, {"creates", r.creates}}
	for _, g := range guards {
		v, ok := s.Chunk.Get(g.key)
		if !ok {
			continue
		}
		reason, err := r.observed(g.key, func() (string, error) { return g.ask(ctx, s, v) })
		if cut := context.Cause(ctx); cut != nil { // a guard that was killed has no meaningful exit code
			return "", &cutGuard{g.key, cut}
		}
		if err != nil {
			return "", fmt.Errorf("checking %s: %w", g.key, err)
		}
		if reason != "" {
			held = reason
		}
	}
	return held, nil
}

// observed evaluates a guard. The observer is called if the guard runs something.
func (r *Runner) observed(key string, ask func() (string, error)) (string, error) {
	if o, ok := r.Observer.(Guarding); ok && key != "creates" && !r.Test {
		o.GuardStarted()
		defer o.GuardDone()
	}
	return ask()
}

// cutGuard is the error of a guard that was cancelled with its run or its step.
type cutGuard struct {
	key   string
	cause error
}

func (c *cutGuard) Error() string { return fmt.Sprintf("running %s: %v", c.key, c.cause) }

func (c *cutGuard) Unwrap() error { return c.cause }

// onlyif keeps a step from running if one of the conditions is false.
func (r *Runner) onlyif(ctx context.Context, s *compile.Step, v any) (string, error) {
	for _, condition := range list(v) {
		holds, known, err := r.holds(ctx, s, condition)
		if err != nil || !known {
			return "", err
		}
		if !holds {
			return "onlyif: the condition is false", nil
		}
	}
	return "", nil
}

// unless keeps a step from running if all of the conditions are true.
func (r *Runner) unless(ctx context.Context, s *compile.Step, v any) (string, error) {
	held := ""
	for _, condition := range list(v) {
		holds, known, err := r.holds(ctx, s, condition)
		if err != nil {
			return "", err
		}
		if known && !holds {
			return "", nil
		}
		if known {
			held = "unless: the condition is true"
		}
	}
	return held, nil
}

func (r *Runner) creates(ctx context.Context, _ *compile.Step, v any) (string, error) {
	for _, path := range list(v) {
		_, err := r.Host.Attributed(ctx).Following().Files.Stat(value.Str(path)) // that a file exists is no secret
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "creates: all of its paths exist", nil
}

func list(v any) []any {
	if l, ok := v.(*value.List); ok {
		return l.Items
	}
	return []any{v}
}

// holds evaluates one condition: a command line, or a function call. known is false for other values.
func (r *Runner) holds(ctx context.Context, s *compile.Step, condition any) (holds, known bool, err error) {
	switch c := condition.(type) {
	case string:
		out, err := r.hostOf(ctx, s).Shell(ctx, guardLine(s, c, r.Shell))
		if err != nil {
			return false, true, decisive(err)
		}
		return out.Code == 0 && !out.TimedOut, true, nil
	case *value.Map:
		function, ok := c.Value("fun").(string)
		if !ok || r.Call == nil {
			return false, false, nil
		}
		return r.holdsFunction(ctx, function, c)
	}
	return false, false, nil
}

// decisive returns err if it must stop the step: a skip, or a refused directory. It returns nil for any other error,
// since a command that cannot be started makes the condition false.
func decisive(err error) error {
	var skipped *host.Skipped
	if _, unsafe := host.Unsafe(err); unsafe || errors.As(err, &skipped) {
		return err
	}
	return nil
}

func (r *Runner) holdsFunction(ctx context.Context, function string, c *value.Map) (holds, known bool, err error) {
	args, kwargs := guardArguments(c)
	code := 0
	got, err := r.Call.Call(functions.WithRetcode(ctx, func(n int) { code = n }), function, args, kwargs)
	if err != nil {
		return false, true, err
	}
	if code != 0 { // exit code of a command that the function ran
		return false, true, nil
	}
	if path, ok := c.Value("get_return").(string); ok {
		got, _ = value.Lookup(got, path, ":")
	}
	return value.Truth(got), true, nil
}

// guardArguments returns the arguments for the function of a guard: those of args, and all other keys of the guard as
// arguments by name.
func guardArguments(c *value.Map) (args []any, kwargs *value.Map) {
	kwargs = value.NewMap()
	for k, v := range c.All() {
		switch k {
		case "fun", "get_return":
		case "args":
			args = list(v)
		default:
			kwargs.Set(value.Str(k), v)
		}
	}
	return args, kwargs
}

// guardLine returns the command line of a guard with the settings, such as user and directory, of the step's own
// commands.
func guardLine(s *compile.Step, text, shell string) host.Line {
	l := host.Line{Text: text, Mute: true, Shell: shell, RunAs: optional(s, "runas"), Dir: optional(s, "cwd"),
		Path: optional(s, "prepend_path")}
	if own := optional(s, "shell"); own != "" && s.State() == "cmd" {
		l.Shell = own
	}
	if n, err := strconv.Atoi(optional(s, "timeout")); err == nil {
		l.Limit = time.Duration(n) * time.Second
	}
	if mask, err := strconv.ParseUint(optional(s, "umask"), 8, 16); err == nil {
		n := int(mask)
		l.Umask = &n
	}
	l.Env = module.Environment(s.Chunk.Value("env"))
	return l
}

func optional(s *compile.Step, key string) string {
	if v := s.Chunk.Value(key); v != nil {
		return value.Str(v)
	}
	return ""
}

// checkCommand runs check_cmd, which decides whether a step succeeded. It does nothing in a dry run if the step would
// change something.
func (r *Runner) checkCommand(ctx context.Context, s *compile.Step, resource module.Resource, result *Result) {
	v, ok := s.Chunk.Get("check_cmd")
	if _, own := resource.(module.Validator); !ok || own || result.Skipped != "" || result.Outcome == Pending {
		return
	}
	for _, line := range list(v) {
		out, err := r.hostOf(ctx, s).Shell(ctx, host.Line{Text: value.Str(line), Shell: r.Shell})
		if err != nil {
			result.fail(err, result.Changes)
			return
		}
		if out.Code != 0 {
			result.Outcome, result.Comment = Failed, "check_cmd failed: "+value.Str(line)
			if host.NotStarted(out.Code) {
				result.Comment = fmt.Sprintf("check_cmd could not be started (exit code %d): "+
					"%s", out.Code, value.Str(line))
				result.Hint = diag.Prerequisite.Coded(
					"install its program in a state that this one requires, or correct the command")
			}
			return
		}
	}
	result.Outcome, result.Comment = Succeeded, "check_cmd succeeded"
}
