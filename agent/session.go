package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Trees say where a call takes its files from, if not from what is deployed.
type Trees struct {
	Minion string   // directory with a minion file
	States []string // directories of SLS files; they replace all others
	Pillar []string // directories of pillar files, or files whose content is pillar
	Grains string   // file of grains that win over what was found out

	ID         string                  // of the host, and its grain; "" for the host's own
	SkipGrains bool                    // find out no grains
	Logged     func(level string) bool // whether what templates log becomes a note; nil for warnings and above
}

func (t Trees) logged(level string) bool {
	if t.Logged == nil {
		return level == "warning" || level == "error" || level == "critical"
	}
	return t.Logged(level)
}

// Opened is a session with how its results are shown.
type Opened struct {
	*session.Session
	Output minion.Output
	Notes  []string // what a person should know about it
	// Observer hears of each state of a call as it ends; nil for none.
	Observer exec.Observer

	statesPos diag.Pos // where its state directories are said
}

// Session opens a session over trees. quick leaves out what is known of the host, for functions that
// ask nothing about it.
func (a *Agent) Session(ctx context.Context, t Trees, quick bool) (*Opened, error) {
	var unread []string
	if os.Geteuid() != 0 {
		a.Unread = func(err error) {
			unread = append(unread, fmt.Sprintf("only root may read this, so the call does without it: %v", err))
		}
		defer func() { a.Unread = nil }()
	}
	settings, opened, err := a.treeSettings(ctx, t, quick || t.SkipGrains)
	if err != nil {
		return nil, err
	}
	opened.Notes = append(opened.Notes, unread...)
	if err := a.override(t, &settings); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if t.ID != "" {
		settings.ID = t.ID
		settings.Grains = settings.Grains.Clone()
		settings.Grains.Set("id", t.ID)
	}
	settings.Shell, settings.Version, settings.Remote = true, a.Version, a.Remote
	settings.Running = a.runningNow
	settings.Log = func(level, message string) {
		if t.logged(level) {
			opened.Notes = append(opened.Notes, message)
		}
	}
	opened.Session = session.New(settings)
	return opened, nil
}

// treeSettings are the settings of the trees' first source: a minion file, or what is deployed.
func (a *Agent) treeSettings(ctx context.Context, t Trees, quick bool) (session.Settings, *Opened, error) {
	opened := &Opened{Output: minion.Output{Mode: a.callMode(), Verbose: a.Config.StateVerbose, Color: true}}
	if t.Minion == "" && !quick {
		settings, err := a.deployedSettings(ctx)
		return settings, opened, err
	}
	h, err := a.StateHost()
	if err != nil {
		return session.Settings{}, nil, err
	}
	settings := session.Settings{Host: h, Options: value.NewMap(), Grains: value.NewMap()}
	var config *minion.Config
	if t.Minion != "" {
		if settings.Trees, err = h.Machine(); err != nil {
			return settings, nil, err
		}
		if config, err = minion.Load(t.Minion); err != nil {
			return settings, nil, exit.WithCode(exit.Usage, err)
		}
	}
	if !quick {
		var warnings []error
		if settings.Grains, warnings, err = a.minionGrains(ctx, config); err != nil {
			return settings, nil, err
		}
		for _, w := range warnings {
			opened.Notes = append(opened.Notes, w.Error())
		}
	}
	settings.ID = value.Str(settings.Grains.Value("id"))
	if config != nil {
		opened.minion(config, &settings)
		dir, err := filepath.Abs(t.Minion)
		if err != nil {
			return settings, nil, err
		}
		settings.GrainsFile = function.GrainsFile{Path: filepath.Join(dir, "grains"), Host: h.WithFiles(settings.Trees)}
	}
	return settings, opened, nil
}

// minionGrains are the grains of a host whose files a minion file names: those of a deploy, who the host is included, and
// those of the file's grains_dirs.
func (a *Agent) minionGrains(ctx context.Context, config *minion.Config) (*value.Map, []error, error) {
	id, err := a.identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	if config == nil {
		return a.Grains(ctx, id, "")
	}
	return a.Grains(ctx, id, "", config.GrainsDirs...)
}

// identity is who the host is; nothing where its name does not say. A user who may not read the ledger gets what the name says.
func (a *Agent) identity(ctx context.Context) (grains.Identity, error) {
	book, err := a.ReadHostLedger()
	if errors.Is(err, os.ErrPermission) {
		book, err = &ledger.Ledger{}, nil
	}
	if err != nil {
		return grains.Identity{}, exit.WithCode(exit.Usage, err)
	}
	id, _, err := a.Who(ctx, grains.Identity{}, book)
	if err != nil {
		return grains.Identity{}, nil //nolint:nilerr // a host whose name says nothing has a minion file all the same
	}
	return id, nil
}

// minion takes over what a minion file says.
func (o *Opened) minion(c *minion.Config, s *session.Settings) {
	o.Output, o.statesPos = c.Output, c.StatesPos
	o.Notes = append(o.Notes, c.Ignored...)
	s.States, s.Pillar, s.Options, s.Test, s.Failhard = c.States, c.Pillar, c.Options, c.Test, c.Failhard
	s.Grains.Update(c.Grains)
	if c.ID != "" {
		s.ID = c.ID
		s.Grains.Set("id", c.ID)
	}
}

// deployedSettings are those of what is deployed; on a host without a deploy there are no files.
func (a *Agent) deployedSettings(ctx context.Context) (session.Settings, error) {
	book, err := a.ReadHostLedger()
	if a.Skips(err) {
		book, err = &ledger.Ledger{}, nil
	}
	if err != nil {
		return session.Settings{}, exit.WithCode(exit.Usage, err)
	}
	id, _, err := a.Who(ctx, grains.Identity{}, book)
	if err != nil {
		id = grains.Identity{} // a function that needs none can still be called
	}
	service, base := "", ""
	runs := book.Runs()
	if runs != nil {
		service, base = a.LinkedDirs(*runs)
	}
	if service != "" {
		service = filepath.Join(filepath.Dir(service), "current")
	}
	request, _, err := a.EngineRequest(ctx, id, service, base)
	if err != nil {
		return session.Settings{}, err
	}
	settings := state.SettingsFor(request)
	settings.Strict = false // a call says what one state is up to, as salt-call would
	if runs == nil {
		settings.States, settings.Pillar = nil, nil
	}
	return settings, nil
}

// onMachine names the deployed trees as this machine does, so that directories of the machine can
// stand beside them.
func (a *Agent) onMachine(s *session.Settings) (err error) {
	if s.Trees != nil || !a.Layout.Relocated() {
		return nil
	}
	if s.Trees, err = s.Host.Machine(); err != nil {
		return err
	}
	for _, envs := range [][]roots.Env{s.States, s.Pillar} {
		for _, env := range envs {
			for i, dir := range env.Dirs {
				env.Dirs[i] = a.Layout.Path(dir)
			}
		}
	}
	return nil
}

// override takes over what was named on the command line.
func (a *Agent) override(t Trees, s *session.Settings) error {
	if len(t.States)+len(t.Pillar) > 0 {
		if err := a.onMachine(s); err != nil {
			return err
		}
	}
	if len(t.States) > 0 {
		dirs, err := directories("--states", t.States)
		if err != nil {
			return err
		}
		s.States = []roots.Env{{Name: "base", Dirs: dirs}}
	}
	if len(t.Pillar) > 0 {
		if err := overridePillar(t.Pillar, s); err != nil {
			return err
		}
	}
	if t.Grains == "" {
		return nil
	}
	more, err := custom.ReadFile(t.Grains)
	if errors.Is(err, os.ErrNotExist) {
		return diag.WithHint(fmt.Errorf("--grains: there is no file %s", t.Grains), "give a YAML or JSON file of grains")
	}
	if err != nil {
		return err
	}
	s.Grains = s.Grains.Clone()
	if describesSystem(more) {
		s.Grains.Delete("systemd")
	}
	s.Grains.Update(more)
	if id, ok := more.Value("id").(string); ok {
		s.ID = id
	}
	return nil
}

// describesSystem reports whether grains are those of a system of its own. Formulas ask for the grain systemd by its
// presence, so the host's must not stand for a system that has none.
func describesSystem(given *value.Map) bool {
	return given.Has("os") || given.Has("os_family") || given.Has("kernel") || given.Has("init")
}

func overridePillar(paths []string, s *session.Settings) error {
	var dirs []string
	for _, path := range paths {
		info, err := os.Stat(path)
		found, err := walk.Found(err)
		if err != nil {
			return err
		}
		if found && !info.IsDir() {
			data, err := custom.ReadFile(path)
			if err != nil {
				return err
			}
			s.Override = s.Override.Clone()
			s.Override.Update(data)
			continue
		}
		dirs = append(dirs, path)
	}
	if len(dirs) == 0 {
		return nil
	}
	dirs, err := directories("--pillar", dirs)
	s.Pillar = []roots.Env{{Name: "base", Dirs: dirs}}
	return err
}

func directories(flag string, names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		is, err := walk.Directory(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if !is {
			return nil, diag.WithHint(fmt.Errorf("%s: there is no directory %s", flag, name), "give the directory that the top file is in")
		}
		all = append(all, dir)
	}
	return all, nil
}

// Call calls a function. While states change the host, no other run does.
func (a *Agent) Call(ctx context.Context, o *Opened, name string, args []any, kwargs *value.Map) (session.Answer, error) {
	if err := o.findable(name); err != nil {
		return session.Answer{}, err
	}
	if session.Changes(name) && !o.Test && !value.Truth(kwargs.Value("test")) && !value.Truth(kwargs.Value("concurrent")) {
		held, err := a.lockForCall(ctx, o, name, value.Truth(kwargs.Value("queue")))
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
func (a *Agent) lockForCall(ctx context.Context, o *Opened, name string, queue bool) (*records.Exclusive, error) {
	for {
		held, err := a.Lock("call " + name)
		var other *lock.Held
		if !queue || a.Within != "" || !errors.As(err, &other) {
			return held, err
		}
		say := func(format string, args ...any) { o.Notes = append(o.Notes, fmt.Sprintf(format, args...)) }
		if err := a.WaitUntilIdle(ctx, say); err != nil {
			return nil, err
		}
	}
}

// runningNow lists the run that holds the lock, as state.running answers.
func (a *Agent) runningNow() []string {
	holder, busy := lock.Taken(a.Layout.Lock())
	switch {
	case !busy:
		return nil
	case holder.PID == 0:
		return []string{"another run is under way"}
	}
	return []string{fmt.Sprintf("%q is running as PID %d since %s", holder.Command, holder.PID, holder.Since.Format(time.RFC3339))}
}

// findable checks that functions which read SLS files have a directory to read them from.
func (o *Opened) findable(name string) error {
	if !session.ReadsStates(name) {
		return nil
	}
	if len(o.States) == 0 {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("nothing is deployed on this host, and no state files were named"), "name them: --states DIR, or -c DIR with a minion file"))
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
	problems.Add(o.statesPos, "file_roots: none of the directories is there: %s", strings.Join(dirs, ", ")).
		WithHint("create one, or name the state files with --states DIR")
	return problems
}

// WhyStep explains the steps of the highstate that a word means.
func (a *Agent) WhyStep(ctx context.Context, t Trees, word string) ([]session.Explanation, error) {
	opened, err := a.Session(ctx, t, false)
	if err != nil {
		return nil, err
	}
	if err := opened.findable("state.highstate"); err != nil {
		return nil, err
	}
	return opened.Explain(ctx, word)
}

// callMode is how much of each state a call shows. A person who calls a function wants to see what changes; what agent.yaml
// has by default is for runs by the timer.
func (a *Agent) callMode() string {
	if a.Config.StateOutput == "mixed" {
		return "changes"
	}
	return a.Config.StateOutput
}
