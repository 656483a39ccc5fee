package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Scripts returns the text of a script, rendered if a template engine is named.
type Scripts interface {
	Script(ctx context.Context, source, env, template string, vars *value.Map) ([]byte, error)
}

// script implements cmd.script: it runs a script from the state tree, which is on the host only while it runs.
type script struct {
	options
	Source   string     `sls:"source"`
	Template string     `sls:"template"`
	Args     string     `sls:"args"`
	Context  *value.Map `sls:"context"`
	Defaults *value.Map `sls:"defaults"`
	SLSEnv   string     `sls:"__env__"`

	scripts Scripts
}

func (s *script) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if s.Root != "" {
		return module.Diff{}, diag.Argument.Hint(errors.New("cmd.script has no root: the script would run on the host"),
			"put the script into the tree with file.managed, and run it with cmd.run and root")
	}
	if err := s.checkTrusted(h); err != nil {
		return module.Diff{}, err
	}
	return s.would(h)
}

// checkTrusted returns an error if root would run a script of the host that an unprivileged user can change.
func (s *script) checkTrusted(h *host.Host) error {
	source := s.Source
	if source == "" {
		source, _, _ = strings.Cut(s.Name, " ")
	}
	source = strings.TrimPrefix(source, "file://")
	if !path.IsAbs(source) || s.RunAs != "" && s.RunAs != "root" {
		return nil
	}
	if err := host.CheckTrusted(h.Files, source); err != nil {
		return diag.Exposed.Hint(fmt.Errorf("root does not run %s: %w", source, err),
			"take the script from the tree (salt://), give it to root, or name the user with runas")
	}
	return nil
}

// runs returns a context that names the user who runs the script, for the checks of its source.
func (s *script) runs(ctx context.Context, h *host.Host) (context.Context, error) {
	to := host.Recipient{What: "what " + cmp.Or(s.RunAs, "root") + " runs"}
	if s.RunAs != "" {
		u, _, err := h.Accounts.User(s.RunAs) // an unknown user is an error when the command runs
		if err != nil {
			return ctx, err
		}
		to.UID = u.UID
	}
	return host.To(ctx, to), nil
}

func (s *script) Apply(ctx context.Context, h *host.Host, _ module.Diff) (report module.Report, err error) {
	source, args := s.Source, s.Args
	first, rest, more := strings.Cut(s.Name, " ")
	if source == "" {
		source = first
	}
	if args == "" && more {
		args = rest
	}
	if err := s.checkTrusted(h); err != nil {
		return module.Report{}, err
	}
	vars := value.NewMap()
	vars.Update(s.Defaults)
	vars.Update(s.Context)
	ctx, err = s.runs(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	text, err := s.scripts.Script(ctx, source, s.SLSEnv, s.Template, vars)
	if err != nil {
		return module.Report{}, err
	}
	file, remove, err := s.place(h, source, text)
	if err != nil {
		return module.Report{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	l, err := s.line(strings.TrimSpace(file + " " + args))
	if err != nil {
		return module.Report{}, err
	}
	report, err = s.perform(ctx, h, l)
	return report, unstartable(h, source, text, err)
}

// unstartable adds a hint to the error of a script that the kernel cannot start because of its first line.
func unstartable(h *host.Host, source string, text []byte, err error) error {
	line, _, _ := strings.Cut(string(text), "\n")
	hint := process.ScriptHint(source, line, func(path string) bool {
		_, err := h.Files.Stat(path)
		found, err := walk.Found(err)
		return found || err != nil
	})
	if err == nil || hint == "" {
		return err
	}
	return diag.Program.Hint(err, "%s", hint)
}

// place writes the script to a temporary file that only its user can read and execute.
func (s *script) place(h *host.Host, source string, text []byte) (file string, remove func() error, err error) {
	return h.TempFor(s.RunAs, "script"+path.Ext(source), text, 0o700)
}

func (s *script) Watched() module.Resource { return s }

// waitingScript implements cmd.wait_script: it runs the script only if a watched state changes.
type waitingScript struct{ script }

func (w *waitingScript) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, nil
}

func (w *waitingScript) Watched() module.Resource { return &w.script }
