package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// managed implements file.managed: a file with a given content, owner and mode.
type managed struct {
	ownership
	sourced
	templated
	written
	encoded
	unsupported
	validation
	Name           string      `sls:"name"`
	Mode           module.Mode `sls:"mode"`
	FileMode       any         `sls:"file_mode"` // no effect: an argument of other functions
	DirMode        module.Mode `sls:"dir_mode"`
	MakeDirs       bool        `sls:"makedirs"`
	Replace        bool        `sls:"replace"`
	Create         bool        `sls:"create"`
	ShowChanges    bool        `sls:"show_changes"`
	FollowSymlinks bool        `sls:"follow_symlinks"`
	Backup         string      `sls:"backup"`
	Arguments      *value.Map  `sls:"__arguments__"`

	family *family
	job    job
}

func newManaged(f *family) *managed {
	return &managed{
		written: written{ContentsNewline: true, ContentsDelimiter: ":", AllowEmpty: true},
		Replace: true, Create: true, ShowChanges: true, FollowSymlinks: true, family: f,
	}
}

// ValidatesItself marks the state as running check_cmd itself, on the new content before it is in place.
func (m *managed) ValidatesItself() {}

func (m *managed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: m.warnings()}
	if err := m.consistent(); err != nil {
		return d, err
	}
	name, err := absolute(h, "name", m.Name)
	if err != nil {
		return d, err
	}
	m.Name = name
	if err := m.ownership.mayDeclare(h, m.Mode, name); err != nil {
		return d, err
	}
	if !m.Create && !isFile(h, name) {
		d.Comment = name + " does not exist, and is not to be created"
		return d, nil
	}
	m.job = job{family: m.family, name: name, show: m.ShowChanges, release: true, makeDirs: m.MakeDirs,
		dirMode: m.DirMode, backup: m.Backup,
		follow: m.FollowSymlinks, validation: m.validation}
	m.job.perms.mode = m.Mode
	if m.job.perms.owner, err = m.ownership.resolve(h); err != nil {
		return d, err
	}
	if err := m.job.look(h); err != nil {
		return d, err
	}
	ctx = m.receives(ctx)
	if m.replaces() {
		if m.job.content, err = m.content(ctx, h); err != nil {
			return d, err
		}
	}
	return m.job.check(ctx, h, d)
}

// receives returns a context that names the future owner of the file, for the checks of its source.
func (m *managed) receives(ctx context.Context) context.Context {
	uid, _ := m.job.perms.ids()
	return host.To(ctx, host.Recipient{Path: m.Name, UID: uid})
}

// replaces reports whether content may be written: with replace: False, only to a new file.
func (m *managed) replaces() bool { return m.Replace || !m.job.there }

func isFile(h *host.Host, p string) bool {
	info, err := h.Files.Stat(p)
	return err == nil && info.IsRegular()
}

func (m *managed) warnings() []string {
	list := append(m.unsupported.warnings(), m.sourced.warnings()...)
	list = append(list, backupWarning(m.Backup)...)
	if m.FileMode != nil {
		list = append(list, "file_mode is an argument of file.directory and file.recurse and has no effect here: write mode")
	}
	return list
}

// consistent returns an error for arguments that contradict each other.
func (m *managed) consistent() error {
	contents := m.written.count()
	switch {
	case m.hasSource() && contents > 0:
		return diag.Contradiction.Hint(errors.New("both a source and contents are given"), "keep one of them")
	case m.Mode.Keep && contents > 0:
		return diag.Argument.Hint(errors.New("mode: keep needs a source to take the mode from"),
			"write the mode as a number")
	case contents > 1:
		return diag.Contradiction.Hint(errors.New("contents are given more than once"),
			"keep one of contents, contents_pillar and contents_grains")
	}
	_, err := m.vars(value.NewMap())
	return err
}

// raises reports whether a mode has the setuid or setgid bit.
func raises(m module.Mode) bool {
	return m.Given && m.Bits&(fs.ModeSetuid|fs.ModeSetgid) != 0
}

func (m *managed) hasSource() bool { return value.Truth(m.Source) }

// content returns the content that the file should have.
func (m *managed) content(ctx context.Context, h *host.Host) (content, error) {
	if m.hasSource() {
		return m.fromSource(ctx, h)
	}
	data, given, binary, err := m.written.text(m.family)
	if err != nil || !given {
		return content{}, err
	}
	if m.Template != "" {
		if binary {
			return content{}, errors.New("the contents are binary and cannot be a template")
		}
		vars, err := m.variables("")
		if err != nil {
			return content{}, err
		}
		if data, err = m.family.render(ctx, m.templated, "", m.environment.name(), data, vars); err != nil {
			return content{}, err
		}
	}
	if !binary {
		if data, err = m.encoded.bytes(data); err != nil {
			return content{}, err
		}
	}
	return text(data), nil
}

func (m *managed) fromSource(ctx context.Context, h *host.Host) (content, error) {
	o, err := m.family.origin(ctx, m.sourced, m.Name)
	if err != nil {
		return content{}, err
	}
	if raises(m.Mode) {
		if err := m.family.Sources.CheckTrusted(o.url, o.env); err != nil {
			return content{}, fmt.Errorf("setuid and setgid bits are refused: %w", err)
		}
	}
	switch {
	case m.Template != "":
	case m.job.there && remote(o.url) && o.sum.known() && hasSum(ctx, h, m.job.target, o.sum):
		return content{given: true, source: &o, copied: true, there: true}, nil
	default:
		return m.family.load(ctx, o)
	}
	data, mode, err := m.family.whole(ctx, o, m.templated)
	if err != nil {
		return content{}, err
	}
	vars, err := m.variables(o.url)
	if err != nil {
		return content{}, err
	}
	data, err = m.family.render(ctx, m.templated, o.url, o.env, data, vars)
	return content{given: true, data: data, mode: mode, copied: true}, err
}

// variables returns the variables of a template in addition to those of the run: the state's arguments under their
// own names and Salt's, the accumulated text, and the context.
func (m *managed) variables(source string) (*value.Map, error) {
	given := value.NewMap()
	for key, v := range m.Arguments.All() {
		if name := value.Str(key); name != "" && name[0] != '_' {
			given.Set(name, v)
		}
	}
	mode := any(nil)
	if m.Mode.Given && !m.Mode.Keep {
		mode = module.ModeText(m.Mode.Bits)
	}
	given.Update(value.NewMap("name", m.Name, "source", source, "user", m.User, "group", m.Group, "mode", mode,
		"attrs", m.Attrs, "saltenv", m.environment.name()))
	vars, err := m.vars(given)
	if texts := m.family.accumulated.of(m.Name); texts != nil && err == nil {
		vars.Set("accumulator", texts)
	}
	return vars, err
}

func (m *managed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return m.job.apply(m.receives(ctx), h, d)
}
