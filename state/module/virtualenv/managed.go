package virtualenv

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// managed implements virtualenv.managed: a virtual environment exists and contains the declared packages.
type managed struct {
	Name               string `sls:"name"`
	VenvBin            string `sls:"venv_bin"` // virtualenv, pyvenv or a python; "" for the installed one
	Requirements       any    `sls:"requirements"`
	SystemSitePackages bool   `sls:"system_site_packages"`
	Clear              bool   `sls:"clear"`
	Python             string `sls:"python"`
	Prompt             string `sls:"prompt"`
	User               string `sls:"user"`
	Cwd                string `sls:"cwd"`
	EnvVars            any    `sls:"env_vars"`
	IndexURL           string `sls:"index_url"`
	ExtraIndexURL      any    `sls:"extra_index_url"`
	PreReleases        bool   `sls:"pre_releases"`
	NoDeps             bool   `sls:"no_deps"`
	PipUpgrade         bool   `sls:"pip_upgrade"`
	PipPkgs            any    `sls:"pip_pkgs"`
	PipExistsAction    string `sls:"pip_exists_action"`
	PipIgnoreInstalled bool   `sls:"pip_ignore_installed"`
	PipNoCacheDir      bool   `sls:"pip_no_cache_dir"`
	PipCacheDir        string `sls:"pip_cache_dir"`
	Proxy              string `sls:"proxy"`
	NoBinary           any    `sls:"no_binary"`
	Distribute         any    `sls:"distribute"` // no effect: virtualenv no longer has this and the following options
	UseWheel           any    `sls:"use_wheel"`
	NoUseWheel         any    `sls:"no_use_wheel"`
	ExtraSearchDir     any    `sls:"extra_search_dir"`
	NeverDownload      any    `sls:"never_download"`
	PipDownload        any    `sls:"pip_download"`
	PipDownloadCache   any    `sls:"pip_download_cache"`
	ProcessLinks       any    `sls:"process_dependency_links"`
	UseVT              any    `sls:"use_vt"`
	Env                string `sls:"__env__"`

	pip        func(client.EnvironmentPackages) Pip
	make       bool
	withoutPip bool   // the environment exists without pip, as after an incomplete creation
	python     string // the version for a new environment
}

func (v *managed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if !path.IsAbs(v.Name) {
		return module.Diff{}, diag.Argument.Hint(fmt.Errorf("the path %q is not absolute", v.Name), "start it with a slash")
	}
	_, err := h.Following().Files.Stat(path.Join(v.Name, "bin/python"))
	v.withoutPip = err == nil && !hasPip(h, v.Name)
	v.make = err != nil || v.Clear || v.withoutPip
	if !v.make {
		return v.packages().Check(ctx, h)
	}
	program, _ := v.program(h)
	if what, err := client.Awaits(h, program); err != nil || what != "" {
		return module.Awaits(what, "make the virtual environment "+v.Name), err
	}
	if v.python, err = v.version(ctx, h); err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Changes: value.NewMap("new", v.python), Comment: "would make the virtual environment " + v.Name}
	if v.withoutPip && !v.Clear {
		d.Comment = "pip is missing in the virtual environment " + v.Name + "; would make it again, which keeps what is in it"
	}
	if v.asks() {
		d.Unknown, d.Planned = true, d.Changes
	}
	return d, nil
}

// hasPip reports whether a virtual environment contains pip. On Debian without the package python3-venv, the creation
// of an environment fails and leaves one without pip.
func hasPip(h *host.Host, dir string) bool {
	files := h.Following().Files
	for _, lib := range []string{"lib", "lib64"} {
		pythons, _ := files.ReadDir(path.Join(dir, lib)) // missing in an incomplete environment
		for _, python := range pythons {
			if _, err := files.Stat(path.Join(dir, lib, python, "site-packages/pip")); err == nil {
				return true
			}
		}
	}
	_, err := files.Stat(path.Join(dir, "bin/pip"))
	return err == nil
}

// asks reports whether packages are declared.
func (v *managed) asks() bool { return v.Requirements != nil || v.PipPkgs != nil }

// interpreter returns the python for a new environment.
func (v *managed) interpreter() program.Program {
	name := v.Python
	if name == "" {
		name = "python3"
	}
	return program.Program{Name: name, Package: "python3", RunAs: v.User}
}

func (v *managed) version(ctx context.Context, h *host.Host) (string, error) {
	out, err := v.interpreter().Ask(ctx, h, "-c", "import platform; print('Python ' + platform.python_version())")
	return strings.TrimSpace(out), err
}

// program returns the program that creates the environment, and its arguments.
func (v *managed) program(h *host.Host) (program.Program, []string) {
	p := program.Program{Name: v.VenvBin, Package: "python3-virtualenv", RunAs: v.User, Dir: v.Cwd, Target: v.Name,
		Remote: true, Env: module.Environment(v.EnvVars)}
	var args []string
	if p.Name == "" {
		p.Name = "virtualenv"
		if _, ok := h.Which("virtualenv"); !ok {
			p.Name = v.interpreter().Name
		}
	}
	switch base := path.Base(p.Name); {
	case strings.HasPrefix(base, "python"):
		p.Package, args = "python3-venv", []string{"-m", "venv"}
	case strings.HasPrefix(base, "virtualenv"):
		python, ok := h.Which(v.interpreter().Name)
		if strings.Contains(v.interpreter().Name, "/") {
			python, ok = v.interpreter().Name, true
		}
		if ok {
			args = []string{"--python", python}
		}
	}
	if v.SystemSitePackages {
		args = append(args, "--system-site-packages")
	}
	if v.Clear {
		args = append(args, "--clear")
	}
	if v.Prompt != "" {
		args = append(args, "--prompt", v.Prompt)
	}
	return p.Trusting(v.Python), append(args, v.Name)
}

func (v *managed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	report := module.Report{Changes: value.NewMap(), Comment: v.Name + " has what it needs"}
	if v.make {
		if err := v.create(ctx, h); err != nil {
			return report, err
		}
		report.Changes.Set("new", v.python)
		report.Comment = "made the virtual environment " + v.Name
	}
	return report, v.packages().install(ctx, h, report.Changes)
}

// create creates the virtual environment. It returns an error if the new environment does not contain pip.
func (v *managed) create(ctx context.Context, h *host.Host) error {
	program, args := v.program(h)
	if what, err := client.Awaits(h, program); err != nil || what != "" {
		return client.OrMissing(err, program, what)
	}
	if _, err := program.Do(ctx, h, args...); err != nil {
		return diag.Library.Hint(fmt.Errorf("making the virtual environment %s: %w", v.Name, err),
			"on Debian and Ubuntu it takes the package python3-venv")
	}
	if v.python == "" {
		var err error
		if v.python, err = v.version(ctx, h); err != nil {
			return err
		}
	}
	if !hasPip(h, v.Name) {
		return diag.Library.Hint(fmt.Errorf("%s made the virtual environment %s without pip", program.Name, v.Name),
			"on Debian and Ubuntu it takes the package python3-venv")
	}
	return nil
}
