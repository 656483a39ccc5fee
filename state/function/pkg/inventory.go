package pkg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	repositories "github.com/corpus-agent/corpus-agent/state/module/pkgrepo"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// inventory returns the functions that read the attributes and files of packages: from dpkg's database, or by
// running rpm.
func inventory(p pkg) function.Table {
	info := function.Of("*names, failhard=True, **kwargs", p.info)
	list, dict := function.Of("*packages, **kwargs", p.fileList), function.Of("*packages, **kwargs", p.fileDict)
	return function.Table{
		"pkg.list_upgrades": function.Of("refresh=True, dist_upgrade=True, **kwargs", p.upgrades),
		"pkg.list_repos": function.Of("**kwargs", func(*value.Map) (*value.Map, error) {
			return repositories.ListRepositories(p.Host)
		}),
		"pkg.info_installed": info,
		"pkg.owner":          function.Of("*paths, **kwargs", p.owner),
		"pkg.file_list":      list,
		"pkg.file_dict":      dict,

		"lowpkg.list_pkgs":    function.Of("*packages, **kwargs", p.some),
		"lowpkg.info":         info,
		"lowpkg.file_list":    list,
		"lowpkg.file_dict":    dict,
		"lowpkg.bin_pkg_info": function.Of("path, saltenv='base'", p.described),
		"lowpkg.version_cmp":  function.Of("ver1, ver2, ignore_epoch=False, **kwargs", p.compare),
	}
}

// upgrades returns the packages that an upgrade would change, with their new versions. It does not refresh the indexes.
func (p pkg) upgrades(ctx context.Context, _, full any, _ *value.Map) (*value.Map, error) {
	if p.Packages == nil {
		return nil, errors.New("the package manager of this host is not known")
	}
	found, err := p.Packages.Upgrades(ctx, value.Truth(full))
	all := value.NewMap()
	for _, name := range function.SortedKeys(found) {
		all.Set(name, found[name])
	}
	return all, err
}

// some returns the versions of all installed packages, or of those that are named.
func (p pkg) some(names []string, _ *value.Map) (*value.Map, error) {
	all, err := p.list(nil, nil)
	if err != nil || len(names) == 0 {
		return all, err
	}
	found := value.NewMap()
	for _, name := range names {
		if v, ok := all.Get(name); ok {
			found.Set(name, v)
		}
	}
	return found, nil
}

func (p pkg) debian() bool { return p.Host.Packages.Family() == "apt" }

func (p pkg) rpm(ctx context.Context, args ...string) (string, error) {
	if family := p.Host.Packages.Family(); family == "apk" || family == "pacman" {
		return "", diag.Packages.Hint(fmt.Errorf("files of packages cannot be looked up on %s", family),
			"run the package manager with cmd.run")
	}
	return p.Stdout(ctx, append([]string{"rpm"}, args...)...)
}

// lists reports whether a file contains a line.
func (p pkg) lists(file, line string) (bool, error) {
	f, err := p.Host.Files.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if s.Text() == line {
			return true, nil
		}
	}
	return false, s.Err()
}

// info returns the attributes of installed packages. A package that is not installed is an error, or with
// failhard=False left out.
func (p pkg) info(ctx context.Context, names []string, failhard bool, _ *value.Map) (*value.Map, error) {
	if p.debian() {
		return p.infoOfDebian(names, failhard)
	}
	all := value.NewMap()
	if len(names) == 0 {
		installed, err := p.installed()
		if err != nil {
			return nil, err
		}
		names = function.SortedKeys(installed)
	}
	for _, name := range names {
		m, err := p.infoOfRPM(ctx, name)
		if err != nil && failhard {
			return nil, fmt.Errorf("package %s is not installed: %w", name, err)
		}
		if err == nil {
			all.Set(name, m)
		}
	}
	return all, nil
}

func (p pkg) infoOfRPM(ctx context.Context, name string) (*value.Map, error) {
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("%q is not the name of a package", name)
	}
	tags := []string{"arch", "group", "license", "packager", "release", "size", "sourcerpm", "summary", "url", "vendor",
		"version", "installtime", "description"}
	text, err := p.rpm(ctx, "-q", "--queryformat", "%{"+strings.Join(tags, "}\\n%{")+"}", name)
	if err != nil {
		return nil, err
	}
	m := value.NewMap()
	for i, v := range strings.SplitN(text, "\n", len(tags)) {
		switch {
		case v == "(none)" || v == "":
		case tags[i] == "sourcerpm":
			m.Set("source", v)
		case tags[i] == "installtime":
			setInstalled(m, v)
		default:
			m.Set(tags[i], v)
		}
	}
	return m, nil
}

// setInstalled adds the time at which a package was installed.
func setInstalled(m *value.Map, seconds string) {
	if n, err := function.Int(seconds); err == nil {
		m.Set("install_date", time.Unix(int64(n), 0).UTC().Format("2006-01-02T15:04:05Z"))
		m.Set("install_date_time_t", n)
	}
}

// infoNames returns the names that Salt gives the fields of dpkg's database.
func infoNames() map[string]string {
	return map[string]string{"Package": "name", "Architecture": "architecture", "Maintainer": "packager",
		"Source": "source", "Version": "version",
		"Section": "group", "Installed-Size": "installed_size", "Homepage": "url", "Origin": "vendor",
		"Description": "description"}
}

func (p pkg) infoOfDebian(names []string, failhard bool) (*value.Map, error) {
	text, err := function.ReadText(p.Host, dpkgStatus)
	if err != nil && !function.Absent(err) {
		return nil, err
	}
	all := value.NewMap()
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		m, name := dpkgInfoOf(paragraph)
		if m == nil || len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		p.setInstallTime(name, m)
		all.Set(name, m)
	}
	for _, name := range names {
		if failhard && !all.Has(name) {
			return nil, diag.Packages.Hint(fmt.Errorf("package %s is not installed", name),
				"failhard=False leaves out what is not installed")
		}
	}
	return all, nil
}

// setInstallTime sets when a package was installed: when its list of files was written.
func (p pkg) setInstallTime(name string, m *value.Map) {
	for _, list := range []string{name + ".list", name + ":" + value.Str(m.Value("architecture")) + ".list"} {
		if info, err := p.Host.Files.Stat(dpkgInfo + "/" + list); err == nil {
			setInstalled(m, fmt.Sprint(info.Modified.Unix()))
		}
	}
}

// dpkgInfoOf parses a paragraph of dpkg's database. It returns nil for a package that is not installed.
func dpkgInfoOf(paragraph string) (m *value.Map, name string) {
	m = value.NewMap()
	installed, last, names := false, "", infoNames()
	for line := range strings.SplitSeq(strings.Trim(paragraph, "\n"), "\n") {
		if strings.HasPrefix(line, " ") {
			if last != "" {
				m.Set(last, value.Str(m.Value(last))+"\n"+line)
			}
			continue
		}
		field, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		if last = names[field]; last != "" && v != "" {
			m.Set(last, v)
		}
		installed = installed || field == "Status" && strings.HasSuffix(v, " installed")
	}
	if !installed {
		return nil, ""
	}
	return m, value.Str(m.Value("name"))
}

// described returns the attributes of a package file.
func (p pkg) described(name, env string) (*value.Map, error) {
	file, ok, err := p.Locate(name, env)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the package file %s does not exist", name)
	}
	f, err := p.HostOf(name).Files.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := p.Host.Packages.Describe(f)
	if err != nil {
		return nil, err
	}
	return value.NewMap("name", found.Name, "version", found.Version, "arch", found.Arch), nil
}
