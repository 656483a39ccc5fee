package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Trees name the sources of the files of a call, if they are not those of the deployed releases.
type Trees struct {
	Minion string   // directory with a minion file
	States []string // directories of SLS files; they replace all others
	Pillar []string // directories of pillar files, or files whose content is pillar
	Grains string   // file of grains that replace collected ones

	ID         string                  // of the host, and its grain; "" for the host's own
	SkipGrains bool                    // collect no grains
	Logged     func(level string) bool // whether a log message becomes a note; nil means warnings and above
}

func (t Trees) logged(level string) bool {
	if t.Logged == nil {
		return level == "warning" || level == "error" || level == "critical"
	}
	return t.Logged(level)
}

// Opened is a session with the settings of its output.
type Opened struct {
	*session.Session
	Output minion.Output
	Notes  []string // remarks for the user
	// Observer receives each state of a call as it ends; nil if there is none.
	Observer exec.Observer

	statesPos diag.Pos // the position of the setting of its state directories
	unknown   error    // the fault of the host for which grains are missing; nil for none
}

// Session opens a session over trees. quick omits the facts of the host, for functions that do not use them.
func (h *Host) Session(ctx context.Context, t Trees, quick bool) (*Opened, error) {
	var unread []string
	if os.Geteuid() != 0 {
		h.Unread = func(err error) {
			unread = append(unread, fmt.Sprintf("only root may read this, so the call ignores it: %v", err))
		}
		defer func() { h.Unread = nil }()
	}
	settings, opened, err := h.treeSettings(ctx, t, quick || t.SkipGrains)
	if err != nil {
		return nil, err
	}
	opened.Notes = append(opened.Notes, unread...)
	settings.Log = func(level, message string) {
		if t.logged(level) {
			opened.Notes = append(opened.Notes, message)
		}
	}
	if err := h.override(ctx, t, &settings, opened); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if t.ID != "" {
		settings.ID = t.ID
		settings.Grains = settings.Grains.Clone()
		settings.Grains.Set("id", t.ID)
	}
	settings.Shell, settings.Version, settings.Remote = true, h.Version, h.Remote
	settings.Buckets, settings.Until = h.Buckets, ctx
	settings.Running = h.runningNow
	opened.Session = families.New(settings)
	return opened, nil
}

// treeSettings returns the settings of the session's files: those of a minion file, or of the deployed releases.
func (h *Host) treeSettings(ctx context.Context, t Trees, quick bool) (session.Settings, *Opened, error) {
	opened := &Opened{Output: minion.Output{Mode: h.callMode(), Verbose: h.Config.StateVerbose, Color: true}}
	if t.Minion == "" && !quick {
		settings, warnings, err := h.deployedSettings(ctx)
		opened.warn(warnings)
		return settings, opened, err
	}
	machine, err := h.StateHost()
	if err != nil {
		return session.Settings{}, nil, err
	}
	settings := session.Settings{Host: machine, Options: value.NewMap(), Grains: value.NewMap()}
	var config *minion.Config
	if t.Minion != "" {
		if settings.Trees, err = machine.Machine(); err != nil {
			return settings, nil, err
		}
		if config, err = minion.Load(t.Minion); err != nil {
			return settings, nil, exit.WithCode(exit.Usage, err)
		}
	}
	if !quick {
		var warnings []error
		if settings.Grains, warnings, err = h.minionGrains(ctx, config); err != nil {
			return settings, nil, err
		}
		opened.warn(warnings)
	}
	settings.ID = value.Str(settings.Grains.Value("id"))
	if config != nil {
		opened.minion(config, &settings)
		dir, err := filepath.Abs(t.Minion)
		if err != nil {
			return settings, nil, err
		}
		settings.GrainsFile = function.GrainsFile{Path: filepath.Join(dir, "grains"), Host: machine.WithFiles(settings.Trees)}
	}
	return settings, opened, nil
}

// minionGrains returns the grains of a host whose files a minion file names: those of a deploy, including the identity
// of the host, and those of the file's grains_dirs.
func (h *Host) minionGrains(ctx context.Context, config *minion.Config) (*value.Map, []error, error) {
	id, err := h.identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	if config == nil {
		return h.Grains(ctx, id, site.GrainDirs{})
	}
	name, err := h.TreeHostname()
	if err != nil {
		return nil, nil, err
	}
	opts := &session.Settings{ID: cmp.Or(config.ID, name), Grains: config.Grains, States: config.States,
		Pillar: config.Pillar, Options: config.Options, Test: config.Test, Failhard: config.Failhard}
	dirs := site.GrainDirs{More: config.GrainsDirs, Options: opts.MinionOptions()}
	for _, env := range config.States {
		dirs.States = append(dirs.States, env.Dirs...)
	}
	return h.Grains(ctx, id, dirs)
}

// identity returns the identity of the host, which is zero if its name has none. For a user who may not read the
// ledger, it is that of the name.
func (h *Host) identity(ctx context.Context) (grains.Identity, error) {
	book, err := h.ReadHostLedger()
	if errors.Is(err, os.ErrPermission) {
		book, err = &ledger.Ledger{}, nil
	}
	if err != nil {
		return grains.Identity{}, exit.WithCode(exit.Usage, err)
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		return grains.Identity{}, nil //nolint:nilerr // a host without an identity in its name has a minion file
	}
	return id, nil
}

// minion applies the settings of a minion file.
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

// deployedSettings returns the settings of the deployed releases. On a host without a deploy there are no files.
func (h *Host) deployedSettings(ctx context.Context) (session.Settings, []error, error) {
	if err := h.CheckRecords(); err != nil {
		return session.Settings{}, nil, err
	}
	book, err := h.ReadHostLedger()
	if h.Skips(err) {
		book, err = &ledger.Ledger{}, nil
	}
	if err != nil {
		return session.Settings{}, nil, exit.WithCode(exit.Usage, err)
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		id = grains.Identity{} // a function that needs none can still be called
	}
	service, base := "", ""
	runs := book.Runs()
	if runs != nil {
		service, base = h.LinkedDirs(*runs)
	}
	if service != "" {
		service = filepath.Join(filepath.Dir(service), "current")
	}
	request, warnings, err := h.EngineRequest(ctx, id, service, base)
	if err != nil {
		return session.Settings{}, warnings, err
	}
	request.Templates, err = h.Templates(base, service)
	if h.Skips(err) {
		err = nil
	}
	settings := state.SettingsFor(request)
	if err != nil { // only a highstate needs the templates
		settings.Declare = func(*compile.High) error { return err }
	}
	settings.Strict = false // a call reports the results of states, as salt-call does
	if runs == nil {
		settings.States, settings.Pillar = nil, nil
	}
	return settings, warnings, nil
}

// warn adds the reasons why grains are missing to the notes.
func (o *Opened) warn(missing []error) {
	for _, w := range missing {
		o.Notes = append(o.Notes, w.Error())
	}
	o.unknown = cmp.Or(o.unknown, failure.OfGrains(failure.ExceptAbsentPython(missing)))
}
