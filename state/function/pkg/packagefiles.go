package pkg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const (
	dpkgInfo   = "/var/lib/dpkg/info"
	dpkgStatus = "/var/lib/dpkg/status"
)

// filesOf returns the files of an installed package; found is false if it is not installed.
func (p pkg) filesOf(ctx context.Context, name string) (files []string, found bool, err error) {
	if strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, "-") || name == "" {
		return nil, false, fmt.Errorf("%q is not the name of a package", name)
	}
	if !p.debian() {
		text, err := p.rpm(ctx, "-ql", name)
		if strings.TrimSpace(text) == "(contains no files)" {
			text = ""
		}
		return value.SplitLines(text, false), err == nil, nil
	}
	lists, err := p.fileLists()
	if err != nil {
		return nil, false, err
	}
	for _, list := range lists {
		of, arch, _ := strings.Cut(strings.TrimSuffix(list, ".list"), ":")
		if of != name && of+":"+arch != name {
			continue
		}
		text, err := function.ReadText(p.Host, dpkgInfo+"/"+list)
		if err != nil {
			return nil, false, err
		}
		for _, line := range value.SplitLines(text, false) {
			if line != "/." {
				files = append(files, line)
			}
		}
		return files, true, nil
	}
	return nil, false, nil
}

// fileLists returns the names of dpkg's lists of files.
func (p pkg) fileLists() ([]string, error) {
	names, err := p.Host.Files.ReadDir(dpkgInfo)
	if err != nil && !function.Absent(err) {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".list") }), nil
}

// fileDict returns the files of packages by package.
func (p pkg) fileDict(ctx context.Context, names []string, _ *value.Map) (*value.Map, error) {
	problems, all := value.NewList(), value.NewMap()
	for _, name := range names {
		files, found, err := p.filesOf(ctx, name)
		if err != nil {
			return nil, err
		}
		if !found {
			problems.Append("package " + name + " is not installed")
			continue
		}
		all.Set(name, value.Strings(files...))
	}
	return value.NewMap("errors", problems, "packages", all), nil
}

func (p pkg) fileList(ctx context.Context, names []string, _ *value.Map) (*value.Map, error) {
	dict, err := p.fileDict(ctx, names, nil)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, list := range dict.Value("packages").(*value.Map).All() {
		for _, file := range list.(*value.List).Items {
			files = append(files, value.Str(file))
		}
	}
	slices.Sort(files)
	return value.NewMap("errors", dict.Value("errors"), "files", value.Strings(slices.Compact(files)...)), nil
}

// owner returns the package that a file belongs to, or "". For several files it returns a mapping.
func (p pkg) owner(ctx context.Context, paths []string, _ *value.Map) (any, error) {
	owners := value.NewMap()
	for _, path := range paths {
		name, err := p.ownerOf(ctx, path)
		if err != nil {
			return nil, err
		}
		owners.Set(path, name)
	}
	switch len(paths) {
	case 0:
		return "", nil
	case 1:
		return owners.Value(paths[0]), nil
	}
	return owners, nil
}

func (p pkg) ownerOf(ctx context.Context, path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("%s is not an absolute path", path)
	}
	if !p.debian() {
		name, err := p.rpm(ctx, "-qf", "--queryformat", "%{name}", path)
		if err != nil && strings.Contains(err.Error(), "ended with code") {
			return "", nil // the file belongs to no package
		}
		return name, err
	}
	return p.ownersOnDebian(path)
}

// ownersOnDebian returns the names of the packages in whose list of files a path is.
func (p pkg) ownersOnDebian(path string) (string, error) {
	lists, err := p.fileLists()
	if err != nil {
		return "", err
	}
	var owners []string
	for _, list := range lists {
		has, err := p.lists(dpkgInfo+"/"+list, path)
		if err != nil {
			return "", err
		}
		if name, _, _ := strings.Cut(strings.TrimSuffix(list, ".list"), ":"); has && !slices.Contains(owners, name) {
			owners = append(owners, name)
		}
	}
	return strings.Join(owners, ", "), nil
}
