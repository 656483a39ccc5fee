package statement

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"strings"
)

// Component is a package that a release contains.
type Component struct {
	Name    string
	Version string
	PURL    string // https://github.com/package-url/purl-spec
}

// Components finds the packages in a release.
func Components(ctx context.Context, release fs.FS) ([]Component, error) {
	var found []Component
	err := fs.WalkDir(release, ".", func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !d.Type().IsRegular() {
			return err
		}
		var c Component
		switch {
		case isProgram(d):
			found = append(found, modules(release, name)...)
		case path.Base(name) == "METADATA" && strings.HasSuffix(path.Dir(name), ".dist-info"):
			c, err = wheel(release, name)
		case path.Base(name) == "package.json" && strings.Contains(name, "node_modules/"):
			c, err = module(release, name)
		}
		if c.Name != "" {
			found = append(found, c)
		}
		return err
	})
	slices.SortFunc(found, func(a, b Component) int { return strings.Compare(a.PURL, b.PURL) })
	return slices.Compact(found), err
}

// wheel reads the header of a Python package's metadata.
func wheel(release fs.FS, name string) (c Component, err error) {
	f, err := release.Open(name)
	if err != nil {
		return c, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() && lines.Text() != "" {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "Name":
			c.Name = value
		case "Version":
			c.Version = value
		}
	}
	c.PURL = "pkg:pypi/" + strings.ToLower(strings.ReplaceAll(c.Name, "_", "-")) + "@" + c.Version
	return c, nil // the headers before the error are used
}

// module reads the description of a Node package. Files of other kinds are not components.
func module(release fs.FS, name string) (c Component, err error) {
	data, err := fs.ReadFile(release, name)
	if err != nil {
		return c, err
	}
	var p struct{ Name, Version string }
	if json.Unmarshal(data, &p) != nil || p.Version == "" {
		return c, nil
	}
	return Component{Name: p.Name, Version: p.Version, PURL: "pkg:npm/" + strings.ReplaceAll(p.Name, "@", "%40") + "@" +
		p.Version}, nil
}

// isProgram reports whether a file may be a program. Libraries are often executable, too, but are not programs.
func isProgram(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && info.Mode()&0o111 != 0 && !strings.Contains(d.Name(), ".so")
}

// modules returns the Go modules of a program, and the standard library; nothing if the file is not a Go program.
func modules(release fs.FS, name string) []Component {
	f, err := release.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, ok := f.(io.ReaderAt)
	if !ok {
		return nil
	}
	info, err := buildinfo.Read(content)
	if err != nil {
		return nil
	}
	found := []Component{golang("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		found = append(found, linked(m))
	}
	return found
}

// linked returns a module of a program. If the module was replaced, it returns the replacement.
func linked(m *debug.Module) Component {
	path, version := m.Path, m.Version
	if m.Replace != nil {
		if version = m.Replace.Version; version != "" { // a directory has neither a version nor a name
			path = m.Replace.Path
		}
	}
	return golang(path, version)
}

func golang(module, version string) Component {
	c := Component{Name: module, Version: version, PURL: "pkg:golang/" + module}
	if version != "" { // a module that is replaced by a directory has none
		c.PURL += "@" + version
	}
	return c
}
