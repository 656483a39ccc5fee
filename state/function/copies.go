package function

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// copyActs copy files and directories, and make clones.
func copyActs(f *Facts) Table {
	c := cp{f}
	copied, cloned := deeds()["file.copy"], deeds()["git.clone"]
	return Table{
		"cp.get_dir":    Of("path, dest, saltenv=None, template=None, gzip=None, **kwargs", c.dir),
		"file.copy":     Of(copied.signature, c.copy(copied)),
		"git.clone":     Of(cloned.signature+", **kwargs", c.clone(cloned)),
		"sysctl.assign": Of("name, value", c.assign),
	}
}

// act does what a state does.
func (f *Facts) act(ctx context.Context, state string, arguments *value.Map) (*value.Map, error) {
	if f.Modules == nil {
		return nil, fmt.Errorf("%s is not available here", state)
	}
	changes, err := perform(ctx, f.Host, f.Modules(), state, arguments)
	m, _ := changes.(*value.Map)
	return m, err
}

// dir copies a directory of the state tree into one of the host, and lists its files there. As under Salt its last name is
// part of where they go, unless it ends with a slash.
func (c cp) dir(ctx context.Context, url, dest, env string, template, _ any, _ *value.Map) ([]string, error) {
	rest, ok := strings.CutPrefix(url, "salt://")
	if !ok {
		return nil, diag.WithHint(fmt.Errorf("%s is no directory of the state tree", url), "write salt://DIRECTORY")
	}
	name, _, _ := strings.Cut(rest, "?saltenv=")
	dest = strings.TrimRight(dest, "/")
	if !strings.HasSuffix(name, "/") {
		dest += "/" + path.Base(name)
	}
	files, err := c.listFiles(env, name)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no directory %s with files", url)
	}
	arguments := value.NewMap("name", dest, "source", "salt://"+strings.TrimRight(rest, "/"), "__env__", c.env(env))
	if template != nil {
		arguments.Set("template", template)
	}
	if _, err := c.act(ctx, "file.recurse", arguments); err != nil {
		return nil, err
	}
	for i, file := range files {
		files[i] = dest + strings.TrimPrefix(file, strings.Trim(name, "/"))
	}
	return files, nil
}

// copy copies a file, or with recurse a directory.
func (c cp) copy(d deed) any {
	do := d.with(c.Facts)
	return func(ctx context.Context, a Arguments) (any, error) {
		from, to := value.Str(a.Value("src")), value.Str(a.Value("dst"))
		if !path.IsAbs(from) || !path.IsAbs(to) {
			return nil, errors.New("file.copy takes absolute paths")
		}
		info, err := c.Host.Files.Stat(from)
		if err != nil {
			return nil, err
		}
		if info.IsDir() && !value.Truth(a.Value("recurse")) {
			return nil, diag.WithHint(fmt.Errorf("%s is a directory", from), "set recurse=True to copy it")
		}
		if value.Truth(a.Value("remove_existing")) && info.IsDir() {
			if _, err := c.act(ctx, "file.absent", value.NewMap("name", to)); err != nil {
				return nil, err
			}
		}
		return do(ctx, a)
	}
}

// clone makes a clone in the directory cwd, or in the one called name in it. Of git's options it knows --branch.
func (c cp) clone(d deed) any {
	do := d.with(c.Facts)
	return func(ctx context.Context, a Arguments) (any, error) {
		words, err := splitWords(value.Str(orText(a.Value("opts"))) + " " + value.Str(orText(a.Value("git_opts"))))
		if err != nil {
			return nil, err
		}
		branch, err := branchOf(words)
		if err != nil {
			return nil, err
		}
		url, isText := a.Value("url").(string)
		if !isText || url == "" || strings.HasPrefix(url, "-") {
			return nil, typeError("git.clone lacks its argument url")
		}
		b := Arguments{a.Clone()}
		if name, ok := a.Value("name").(string); ok && name != "" {
			b.Set("cwd", path.Join(value.Str(a.Value("cwd")), name))
		}
		b.Delete("name")
		if branch != "" {
			b.Set("branch", branch)
		}
		return do(ctx, b)
	}
}

func orText(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func branchOf(words []string) (branch string, err error) {
	for i := 0; i < len(words); i++ {
		name, v, given := strings.Cut(words[i], "=")
		if name != "--branch" && name != "-b" {
			return "", diag.WithHint(fmt.Errorf("git.clone has no option %s here", words[i]), "it knows --branch; the states git.latest and git.cloned have others as arguments")
		}
		if !given && i+1 < len(words) {
			i++
			v = words[i]
		}
		branch = v
	}
	return branch, nil
}

// assign sets a kernel setting until the next boot.
func (c cp) assign(ctx context.Context, name string, v any) (*value.Map, error) {
	text := value.Str(v)
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "= \n") {
		return nil, fmt.Errorf("%q is no kernel setting", name)
	}
	if found, err := c.Host.Files.Stat("/proc/sys/" + swapped(name)); err != nil || found.IsDir() {
		return nil, fmt.Errorf("there is no kernel setting %s", name)
	}
	_, err := c.Host.Tool(ctx, host.Tool{Argv: []string{"sysctl", "-w", name + "=" + text}, Package: "procps", Changes: host.Subject{Kind: host.KindSysctl, Name: name}})
	return value.NewMap(name, text), err
}
