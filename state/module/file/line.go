package file

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// line implements file.line: it inserts, replaces or deletes a single line of a file.
type line struct {
	ownership
	lineEdit
	Name        string      `sls:"name"`
	ShowChanges bool        `sls:"show_changes"`
	Backup      bool        `sls:"backup"`
	Quiet       any         `sls:"quiet"` // accepted without effect
	Create      bool        `sls:"create"`
	FileMode    module.Mode `sls:"file_mode"`

	family *family
	edit   edit
	own    perms
	made   bool
}

func newLine(f *family) *line {
	return &line{lineEdit: lineEdit{Indent: true}, ShowChanges: true, family: f}
}

func (l *line) Check(_ context.Context, h *host.Host) (d module.Diff, err error) {
	if err := l.lineEdit.Valid(); err != nil {
		return d, err
	}
	l.own.mode = l.FileMode
	if l.own.owner, err = l.ownership.resolve(h); err != nil {
		return d, err
	}
	if err := l.own.check(h, l.Name); err != nil {
		return d, err
	}
	l.edit, err = l.family.openEdit(h, l.Name)
	if errors.Is(err, errMissing) && l.Create {
		l.made, err = true, nil
		l.edit.target, l.edit.name = l.Name, l.Name
	}
	if err = errors.Join(err, l.edit.asText()); err != nil {
		return d, err
	}
	l.edit.by.mode = l.FileMode
	before := lines(string(l.edit.before))
	after, err := l.lineEdit.apply(before)
	if err != nil {
		return d, fmt.Errorf("editing %s: %w", l.edit.name, l.edit.blame(err))
	}
	d = l.edit.diff(readableAll(before), after, l.ShowChanges)
	if !l.made {
		l.own.note(l.edit.info, orNew(&d))
	}
	d.Warnings = append(d.Warnings, l.own.notes...)
	return d, nil
}

func (l *line) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if l.own.problem != nil {
		return module.Report{}, l.own.problem
	}
	if d.Changes.Has("diff") {
		if err := l.write(ctx, h); err != nil {
			return module.Report{}, err
		}
		info, err := h.Files.Stat(l.edit.target)
		if err != nil {
			return module.Report{}, err
		}
		l.edit.info = info
	}
	if err := l.own.set(h, l.edit.target, l.edit.info); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "edited " + l.edit.name}, nil
}

func (l *line) write(ctx context.Context, h *host.Host) error {
	if l.Backup && !l.made {
		if err := l.edit.backUp(ctx, h, "."+time.Now().Format("2006-01-02-15-04-05")); err != nil {
			return err
		}
	}
	return l.edit.write(h)
}

// lineEdit holds the arguments that describe the change.
type lineEdit struct {
	Content  *string `sls:"content"`
	Match    string  `sls:"match"`
	Mode     string  `sls:"mode"`
	Location string  `sls:"location"`
	Before   *string `sls:"before"`
	After    *string `sls:"after"`
	Indent   bool    `sls:"indent"`
}

func (l *lineEdit) Valid() error {
	l.Mode = strings.ToLower(l.Mode)
	switch l.Mode {
	case "delete":
		return nil
	case "insert", "ensure", "replace":
	default:
		return diag.Argument.Hint(noMode(l.Mode), "%s", lineModes)
	}
	if l.Content == nil {
		return diag.Argument.Hint(fmt.Errorf("mode: %s lacks content, the line to put into the file", l.Mode),
			"only mode: delete needs none, and deletes the lines that match gives")
	}
	return nil
}

// lineModes is the hint that lists the modes of file.line.
const lineModes = "set mode: ensure (puts content where after and before say, once), insert (location: start or " +
	"end, or before or after), " +
	"replace (match: the line that content replaces) or delete (match, or content)"

func noMode(given string) error {
	if given == "" {
		return errors.New("file.line lacks its argument mode")
	}
	return fmt.Errorf("mode is %q, and file.line has ensure, insert, replace and delete", given)
}
