package installed

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// units is the directory in which packages install systemd units.
const units = "/usr/lib/systemd/system"

// File is a file that is installed outside the prefix.
type File struct {
	Target string
	Data   []byte
	Mode   fs.FileMode
	User   string // "" for root
	Group  string // "" for root
	Unit   bool   // a systemd unit; other files are configuration, which administrators may change
}

// Render renders a template of a tree, with a pillar of defaults.
type Render func(ctx context.Context, tree fs.FS, source string, pillar map[string]any) (string, error)

// Request describes the files to install.
type Request struct {
	Place
	Tree   fs.FS
	Recipe recipe.Recipe
	Render Render
}

// Files returns the units and the rendered templates. Its error lists all mistakes that would fail on a host.
func Files(ctx context.Context, r Request) ([]File, error) {
	var problems diag.List
	var files []File
	for _, unit := range r.Recipe.UnitFiles(r.Tree) {
		f, err := r.unit(path.Clean(unit))
		add(&problems, diag.Pos{File: unit}, err)
		files = append(files, f)
	}
	for _, t := range r.Recipe.Templates {
		if t.HostOnly {
			continue
		}
		f, err := r.template(ctx, t)
		add(&problems, r.Recipe.At(path.Clean(t.Source)), err)
		files = append(files, f)
	}
	return files, problems.Err()
}

func add(problems *diag.List, at diag.Pos, err error) {
	if err != nil {
		problems.Add(at, "a package or an image cannot hold it: %v", err).WithHint(diag.Package, diag.HintOf(err))
	}
}

// unit returns a unit with its paths rewritten. Comments stay unchanged.
func (r Request) unit(name string) (File, error) {
	data, err := fs.ReadFile(r.Tree, name)
	if err != nil {
		return File{}, err
	}
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, ";") {
			if line, err = r.Text(line); err != nil {
				return File{}, err
			}
		}
		text.WriteString(line)
	}
	return File{Target: path.Join(units, path.Base(name)), Data: []byte(text.String()), Mode: 0o644, Unit: true}, nil
}

func (r Request) template(ctx context.Context, t recipe.Template) (File, error) {
	text, err := r.Render(ctx, r.Tree, t.Source, r.Recipe.Package.Pillar)
	if err != nil {
		return File{}, err
	}
	if text, err = r.Text(text); err != nil {
		return File{}, err
	}
	target, err := r.Text(t.Target)
	if err != nil {
		return File{}, err
	}
	mode, err := mode(t.Mode)
	return File{Target: target, Data: []byte(text), Mode: mode, User: t.User, Group: t.Group}, err
}

func mode(text string) (fs.FileMode, error) {
	if text == "" {
		return 0o644, nil
	}
	m, err := strconv.ParseUint(text, 8, 32)
	return fs.FileMode(m), err
}
