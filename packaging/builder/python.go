package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/packaging/python"
)

// venv is the directory of the virtualenv in a release.
const venv = "venv"

// python makes a virtualenv with its interpreter, installs the packages of the recipe into it, and removes
// everything that depends on this build.
//
// pip is not part of the release: it runs from a separate virtualenv. Byte code is compiled last, since it contains
// the names of its source files.
func (j Job) python(ctx context.Context) error {
	b := j.Recipe.Build
	if b.Requirements == "" && len(b.Install) == 0 {
		return missing("build.requirements or build.install", "the builder python installs them")
	}
	interpreter := b.Python
	if interpreter == "" {
		interpreter = "python3"
	}
	tools := filepath.Join(filepath.Dir(j.Stage), "tools")
	target := filepath.Join(j.Stage, venv)
	for _, args := range [][]string{
		{interpreter, "-m", "venv", j.Run.Inside(tools)},
		{interpreter, "-m", "venv", "--copies", "--without-pip", j.Run.Inside(target)},
		j.pip(tools, target),
	} {
		if err := j.run(ctx, j.Source, args...); err != nil {
			return err
		}
	}
	layout := python.Layout{Dir: target, Built: j.Run.Inside(target), Prefix: filepath.Join(j.Prefix, venv)}
	if err := layout.Relocate(); err != nil {
		return err
	}
	compile := []string{j.Run.Inside(filepath.Join(target, "bin", "python3")), "-m", "compileall", "-q", "-f",
		"--invalidation-mode", "unchecked-hash", "-s", layout.Built, "-p", layout.Prefix,
		j.Run.Inside(filepath.Join(target, "lib"))}
	if err := j.run(ctx, j.Source, compile...); err != nil {
		return err
	}
	if err := j.describe(ctx); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(tools))
}

// pip returns the command line that installs packages into the virtualenv.
func (j Job) pip(tools, target string) []string {
	b := j.Recipe.Build
	args := []string{j.Run.Inside(filepath.Join(tools, "bin", "python")), "-m", "pip", "--python",
		j.Run.Inside(filepath.Join(target, "bin", "python")),
		"install", "--no-compile", "--no-warn-script-location", "--disable-pip-version-check", "--no-input",
		"--root-user-action=ignore"}
	if b.Wheels != "" {
		args = append(args, "--no-index", "--find-links", b.Wheels)
	}
	if b.Requirements != "" {
		args = append(args, "-r", b.Requirements)
	}
	for _, source := range b.Install {
		if !strings.Contains(source, "://") && !strings.HasPrefix(source, ".") {
			source = "./" + source
		}
		args = append(args, source)
	}
	return args
}
