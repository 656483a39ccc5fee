// Package builder makes the tree of a release from a source tree, as its recipe says.
//
// A builder works on a copy: the source is never changed, and files of an earlier build do not interfere. It runs on
// this machine or inside a clean base system, both through a Runner, so that the steps are the same. The output of a
// builder is written to a log, which is kept if the build fails. The release contains nothing that depends on the
// place, the time and the user of the build.
package builder

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Job is one build.
type Job struct {
	Recipe recipe.Recipe
	Source string    // copy of the source tree; builders may write into it
	Stage  string    // empty directory that becomes the release
	Prefix string    // the directory of the release on a host
	Log    io.Writer // output of the programs
	Run    Runner
}

// Runner starts the programs of a build. Paths are those of this machine; a runner for a base system converts them to
// paths inside it.
type Runner interface {
	Run(ctx context.Context, c Command) error
	// Inside returns the path under which the programs see a path of this machine.
	Inside(path string) string
}

// Command is a program to run.
type Command struct {
	Dir  string
	Args []string
	Env  []string // added to the clean environment of a build
	Log  io.Writer
}

// Build runs the recipe's builder. The stage then holds the release.
func Build(ctx context.Context, j Job) error {
	if err := j.build(ctx); err != nil {
		return err
	}
	return j.hooks(ctx)
}

// hooks copies the scripts that the recipe names to the places where an agent expects them, numbered so that they
// run in order.
func (j Job) hooks(ctx context.Context) error {
	for stage, scripts := range j.Recipe.Hooks.Stages() {
		for i, script := range scripts {
			to := filepath.Join(j.Stage, "hooks", stage+".d", fmt.Sprintf("%02d-%s", i+1, filepath.Base(script)))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := copyFile(ctx, filepath.Join(j.Source, script), to, 0o755); err != nil {
				return fmt.Errorf("copying the hook %s: %w", script, err)
			}
		}
	}
	return nil
}

func (j Job) build(ctx context.Context) error {
	switch j.Recipe.Builder {
	case "", "tree":
		return j.release(ctx, j.Source)
	case "command":
		return j.command(ctx)
	case "python":
		return j.python(ctx)
	case "node":
		return j.node(ctx)
	case "go":
		return j.golang(ctx)
	}
	return fmt.Errorf("there is no builder %q", j.Recipe.Builder)
}

// release copies the files of the release from a directory into the stage.
func (j Job) release(ctx context.Context, from string) error {
	if len(j.Recipe.Files) == 0 {
		return CopyTree(ctx, from, j.Stage, nil)
	}
	for _, name := range j.Recipe.Files {
		if err := copyInto(ctx, from, j.Stage, name); err != nil {
			return err
		}
	}
	return nil
}

// describe adds the recipe and the directories of the source that every release needs: states, hooks and the files
// that the recipe names.
func (j Job) describe(ctx context.Context) error {
	names := []string{recipe.Name, "salt", "states", "pillar", "hooks", "grains", ".salt"}
	names = slices.Concat(names, j.Recipe.Files, j.Recipe.Own(os.DirFS(j.Source)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		given, err := walk.Named(filepath.Join(j.Source, name))
		if err != nil {
			return err
		}
		made, err := walk.Named(filepath.Join(j.Stage, name))
		if err != nil {
			return err
		}
		if !given || made { // not every project has all of them; names in the recipe were checked before
			continue
		}
		if err := copyInto(ctx, j.Source, j.Stage, name); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program of the recipe and releases the directory that it makes.
func (j Job) command(ctx context.Context) error {
	if len(j.Recipe.Build.Command) == 0 {
		return missing("build.command", "the builder command runs it")
	}
	if err := j.run(ctx, j.Source, j.Recipe.Build.Command...); err != nil {
		return err
	}
	return j.output(ctx, "the command")
}

// output releases the output directory of a build.
func (j Job) output(ctx context.Context, maker string) error {
	output := filepath.Join(j.Source, j.Recipe.Build.Output)
	if is, err := walk.Directory(output); err != nil {
		return err
	} else if !is {
		return diag.Build.Hint(fmt.Errorf("%s did not make the directory %s", maker, j.Recipe.Build.Output),
			"build.output names the directory that is released")
	}
	if err := j.release(ctx, output); err != nil {
		return err
	}
	return j.describe(ctx)
}

// node installs exactly the packages of the lock file, and runs a script of the project.
func (j Job) node(ctx context.Context) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		if found, err := walk.Exists(filepath.Join(j.Source, name)); err != nil {
			return err
		} else if !found {
			return missing(name, "npm ci installs the packages that it lists")
		}
	}
	if err := j.run(ctx, j.Source, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=warn"); err != nil {
		return err
	}
	if script := j.Recipe.Build.Script; script != "" {
		if err := j.run(ctx, j.Source, "npm", "run", script); err != nil {
			return err
		}
	}
	if j.Recipe.Build.Output != "" {
		return j.output(ctx, "npm")
	}
	if err := j.run(ctx, j.Source, "npm", "prune", "--omit=dev", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	// npm records times in this file, which a host does not need.
	if err := os.Remove(filepath.Join(j.Source, "node_modules/.package-lock.json")); err != nil && !os.IsNotExist(err) {
		return err
	}
	return j.release(ctx, j.Source)
}

// golang builds static programs that are independent of the building machine.
func (j Job) golang(ctx context.Context) error {
	main := j.Recipe.Build.Main
	if len(main) == 0 {
		main = []string{"./..."}
	}
	bin := filepath.Join(j.Stage, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	args := append([]string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o",
		j.Run.Inside(bin) + "/"}, main...)
	if err := j.run(ctx, j.Source, args...); err != nil {
		return err
	}
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return diag.Build.Hint(fmt.Errorf("%s has no program", strings.Join(main, " ")),
			"build.main names the packages whose name is main")
	}
	return j.describe(ctx)
}

func (j Job) run(ctx context.Context, dir string, args ...string) error {
	return j.Run.Run(ctx, Command{Dir: dir, Args: args, Log: j.Log})
}

func missing(name, why string) error {
	return diag.Build.Hint(fmt.Errorf("%s is missing", name), "%s", why)
}

// Here runs programs on this machine.
type Here struct{}

// Inside implements Runner.
func (Here) Inside(path string) string { return path }

// Run implements Runner.
func (Here) Run(ctx context.Context, c Command) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, c.Log, c.Log
	cmd.Env = append(environment(os.Getenv("PATH"), os.Getenv("HOME")), caches()...)
	cmd.Env = append(cmd.Env, c.Env...)
	return explain(c.Args, cmd.Run())
}

// environment returns the environment of a build, without variables that differ between users.
func environment(path, home string) []string {
	return []string{
		"PATH=" + path, "HOME=" + home, "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "SOURCE_DATE_EPOCH=0",
		"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
	}
}

// caches returns the variables of the environment that set the caches and the sources of downloads of tools. They do
// not change the content of downloads.
func caches() []string {
	var kept []string
	for _, name := range []string{
		"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOMODCACHE", "GOCACHE", "NPM_CONFIG_REGISTRY",
		"npm_config_registry", "NPM_CONFIG_CACHE",
		"PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CACHE_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
		"https_proxy", "no_proxy",
		"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
	} {
		if v, ok := os.LookupEnv(name); ok {
			kept = append(kept, name+"="+v)
		}
	}
	return kept
}

func explain(args []string, err error) error {
	if err == nil {
		return nil
	}
	line := strings.Join(args, " ")
	if len(line) > 120 {
		line = line[:120] + " ..."
	}
	err = fmt.Errorf("%s: %w", line, err)
	if strings.Contains(err.Error(), exec.ErrNotFound.Error()) {
		return diag.Build.Hint(err, "install %s, or name a base system in build.base and the package in build.needs",
			args[0])
	}
	return diag.Build.Hint(err, "the log has its output")
}
