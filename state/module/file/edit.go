package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// edit is a change of an existing text file.
type edit struct {
	family *family
	name   string // as given in the state
	target string // name with links resolved
	info   host.Info
	before []byte
	after  []byte
	by     readers
}

// errMissing is wrapped by openEdit's error for a file that does not exist.
var errMissing = errors.New("does not exist")

// lackingFile marks err as caused by a missing file, which another state may create.
func lackingFile(err error, name string) error {
	return host.WithMissing(diag.Prerequisite.Hint(err, "require the state that makes it"), host.AFile, name)
}

// lackingDir returns the error for a directory that does not exist, or in whose place is something else.
func lackingDir(h *host.Host, name string) error {
	if err := h.Obstructed(name); err != nil {
		return err
	}
	return host.WithMissing(diag.Prerequisite.Hint(fmt.Errorf("%s is not a directory", name),
		"require the state that makes it"), host.ADirectory, name)
}

// openEdit reads the file to edit.
func (f *family) openEdit(h *host.Host, name string) (edit, error) {
	name, err := absolute(h, "name", name)
	if err != nil {
		return edit{}, err
	}
	e := edit{family: f, name: name, by: readers{host: h, file: name}}
	if err := masked(h, name); err != nil {
		return e, err
	}
	info, there, err := look(h.Files.Stat, name)
	switch {
	case err != nil:
		return e, err
	case !there:
		return e, lackingFile(fmt.Errorf("%s %w", name, errMissing), name)
	case !info.IsRegular():
		return e, host.Unlike(name, info, host.AFile, "")
	}
	e.info = info
	if e.target, err = h.Files.Resolve(name); err != nil {
		return e, err
	}
	e.before, err = h.Files.ReadFile(e.target)
	return e, err
}

// unfit is an error that the content of a file causes, and not the arguments of the state alone.
type unfit struct{ error }

// Unwrap returns the error.
func (u unfit) Unwrap() error { return u.error }

// blame marks an error of editing as one of the file, if its content causes the error.
func (e *edit) blame(err error) error {
	var content unfit
	if !errors.As(err, &content) {
		return err
	}
	return host.Unsuitable(e.name, err)
}

// asText returns an error if the content is binary.
func (e *edit) asText() error {
	if isText(e.before) {
		return nil
	}
	return host.Unsuitable(e.name, diag.Edit.Hint(fmt.Errorf("%s is binary, and only text can be edited", e.name),
		"use file.managed"))
}

// diff sets the new content and returns the module.Diff for it.
func (e *edit) diff(before, after []string, show bool) module.Diff {
	e.after = []byte(strings.Join(after, ""))
	if bytes.Equal(e.before, e.after) {
		return module.Diff{Comment: e.name + " is as it should be"}
	}
	var text any = true // Salt reports True if changes are not shown
	if show {
		text = e.family.unified(e.by, before, after, "")
	}
	return module.Diff{Changes: value.NewMap("diff", text), Comment: "would edit " + e.name}
}

// apply writes the new content. With a suffix it first copies the old content to a backup.
func (e *edit) apply(ctx context.Context, h *host.Host, d module.Diff, suffix string) (module.Report, error) {
	if err := e.backUp(ctx, h, suffix); err != nil {
		return module.Report{}, fmt.Errorf("backing up %s: %w", e.name, err)
	}
	if err := e.write(h); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "edited " + e.name}, nil
}

func (e *edit) write(h *host.Host) error {
	return h.Files.Write(e.target, host.NewFile{Content: bytes.NewReader(e.after), UID: -1, GID: -1})
}

// backUp copies the old content to a file beside the target. If the edited name is a link, the backup gets a
// link as well.
func (e *edit) backUp(ctx context.Context, h *host.Host, suffix string) error {
	if suffix == "" {
		return nil
	}
	if suffix == "minion" {
		return e.family.backUp(ctx, h, suffix, e.target)
	}
	if err := copyOne(ctx, h, e.target, e.target+suffix, e.info, ownerOf(h, e.info)); err != nil {
		return err
	}
	link, err := h.Files.Readlink(e.name)
	if err != nil { // not a link
		return nil
	}
	return h.Files.Symlink(link+suffix, e.name+suffix)
}

// suffix converts the backup argument of the editing functions to the suffix of the backup's name; "" means no
// backup.
func suffix(v any) string {
	switch v {
	case nil, false, "":
		return ""
	case true:
		return ".bak"
	}
	return value.Str(v)
}

// lines returns the lines of a text with their ends: \n, \r\n or a single \r.
func lines(text string) []string {
	var list []string
	for text != "" {
		i := strings.IndexAny(text, "\r\n")
		switch {
		case i < 0:
			i = len(text)
		case text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n':
			i += 2
		default:
			i++
		}
		list = append(list, text[:i])
		text = text[i:]
	}
	return list
}

// orNew returns the changes of d, which it creates if they are nil.
func orNew(d *module.Diff) *value.Map {
	if d.Changes == nil {
		d.Changes = value.NewMap()
	}
	return d.Changes
}
