package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/pipeline"
	"github.com/corpus-agent/corpus-agent/state/check"
	"github.com/corpus-agent/corpus-agent/state/defaults"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// buildHow has the flags of build.
type buildHow struct {
	outputs []string
	version string
	onTop   string // the base of the image
	check   bool
	commit  source.Commit // of a tree that git fetched
	beside  pipeline.Beside
	log     string // of a build that fails; "" for beside the first output

	unscanned bool // without looking for secrets

	said func(name, version string) error // checks what the recipe says before the tree is built; may be nil
}

// built is what a build says: as JSON, and as text.
type built struct {
	result any
	text   string
}

// build makes the outputs of a tree and says so.
func (p *program) build(ctx context.Context, tree string, how buildHow) error {
	made, err := p.makeOutputs(ctx, tree, how)
	if err != nil {
		return err
	}
	return p.answer(made.result, "%s", made.text)
}

// makeOutputs packs a plain tree unchanged, and builds any other with the pipeline.
func (p *program) makeOutputs(ctx context.Context, tree string, how buildHow) (made built, err error) {
	if len(how.outputs) == 0 && !how.check {
		return made, exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("no output file was given"),
			"name one, such as -o %s.tar.zst", filepath.Base(tree)))
	}
	at, err := p.epoch()
	if err != nil {
		return made, err
	}
	if err := errors.Join(diag.Usage.Hint(isTree(tree), "give the directory whose content is built, or a URL"),
		haveDirectories(how.outputs)); err != nil {
		return made, exit.WithCode(exit.Usage, err)
	}
	for _, output := range how.outputs {
		_ = durable.SweepAbandoned(filepath.Dir(output)) // files of a killed build only take disk space
	}
	r, err := recipe.LoadStrict(os.DirFS(tree))
	if err != nil {
		return made, err
	}
	if err := errors.Join(p.noteNames(tree, r), p.noteChangeable(tree, r), p.warnOfMistakes(ctx, tree)); err != nil {
		return made, err
	}
	plain := !how.check && len(how.outputs) == 1 && r.Builder == "" && len(r.Files)+
		len(r.Hooks.All()) == 0 && strings.HasSuffix(how.outputs[0], ".tar.zst")
	if err := how.checkSaid(r, plain); err != nil {
		return made, err
	}
	if plain {
		return p.pack(ctx, tree, how, packaging.Options{Time: at, Skip: how.outputs[0], LeaveOut: r.LeaveOut,
			Allow: packaging.AllowedBy(r), Checked: how.unscanned})
	}
	request := pipeline.Request{Source: tree, Outputs: how.outputs, Version: how.version, Tool: cli.Version, Time: at,
		Cache: p.cache(), OnTop: how.onTop, Commit: pipeline.Commit(how.commit), Render: renderDefaults, Beside: how.beside,
		FailureLog: how.log, Unscanned: how.unscanned}
	request.Waiting = func(text string) { fmt.Fprintln(p.Err, text) }
	if p.verbose {
		request.Log, request.Waiting = p.Err, nil // the log has this message too
	}
	if how.check {
		return p.checkBuild(ctx, request)
	}
	var done func()
	request.Progress, done = p.progress("packing")
	result, err := pipeline.Make(ctx, request)
	done()
	if err != nil {
		return made, buildError(err)
	}
	return built{result, fmt.Sprintf("built %s %s: %s\ncontent %s", result.Name, result.Version,
		strings.Join(result.Outputs, ", "), result.Content)}, nil
}

// checkSaid checks the name and the version in a recipe that the artifact will have. The pipeline writes the version of
// the command line.
func (how buildHow) checkSaid(r recipe.Recipe, plain bool) error {
	if how.said == nil || len(r.Files) > 0 {
		return nil
	}
	version := r.Version
	if !plain || version == "git" {
		version = ""
	}
	return how.said(r.Name, version)
}

// renderDefaults renders a template for packages and images.
func renderDefaults(ctx context.Context, tree fs.FS, source string, pillar map[string]any) (string, error) {
	return defaults.Render(ctx, defaults.Template{Tree: tree, Source: source, Pillar: pillar})
}

// noteNames prints notes about names in top files, the recipe and units that hosts may not find, and about SLS
// files that no top file names.
func (p *program) noteNames(tree string, r recipe.Recipe) error {
	files := os.DirFS(tree)
	var errs []error
	note := func(names []string, err error, format string) {
		errs = append(errs, err)
		if len(names) > 0 {
			fmt.Fprintf(p.Err, "note: "+format+"\n", diag.OneLine(strings.Join(names, ", ")))
		}
	}
	names, err := packaging.UnusedSLS(files)
	note(names, err,
		"no top file of this tree names %s; hosts apply them only if another top file does, such as the service's")
	names, err = packaging.Missing(files)
	note(names, err,
		"top files name SLS files that this tree lacks (%s); hosts refuse the release unless base or the service has them")
	names, err = packaging.Foreign(files, append(slices.Clone(r.Units), r.Reload...))
	note(names, err,
		"corpus.yaml names units that no file of this tree is or mentions: %s; "+
			"a deploy fails on hosts where nothing else installs them")
	if r.Builder == "" || r.Builder == "tree" { // other builders choose what they take
		names, err = packaging.Unneeded(files, r.LeaveOut)
		note(names, err, "the release will have %s, which hosts do not need: name them under leave_out in corpus.yaml")
	}
	names, err = packaging.ThroughNext(files)
	note(names, err,
		"%s: next leads to releases that are not proven yet, also after a power failure; use current in units and "+
			"permanent links")
	return errors.Join(errs...)
}

// mostMistakes is the number of mistakes in SLS files that a build prints.
const mostMistakes = 20

// warnOfMistakes prints warnings about mistakes in SLS files, templates and files in Python that would fail on every
// host. They do not stop the build, since an engine other than the native one may accept them.
func (p *program) warnOfMistakes(ctx context.Context, tree string) error {
	found, err := check.Tree(os.DirFS(tree))
	programs, unread := check.Programs(ctx, os.DirFS(tree))
	found, err = append(found, programs...), errors.Join(err, unread)
	for _, d := range found[:min(len(found), mostMistakes)] {
		kind := "warning: "
		if d.HostOnly {
			kind = "note: "
		}
		fmt.Fprintln(p.Err, kind+d.Text())
	}
	if len(found) > mostMistakes {
		fmt.Fprintf(p.Err, "warning: and %s\n", diag.Count(len(found)-mostMistakes, "more mistake"))
	}
	return err
}

// noteChangeable prints notes about the templates that the project's user may change. Hosts do not render them
// unless the recipe sets writable-code.
func (p *program) noteChangeable(tree string, r recipe.Recipe) error {
	found, err := recipe.Changeable(os.DirFS(tree), r.Writable)
	so := "hosts refuse to render it; put it into the state tree"
	if r.WritableCode {
		so = "hosts render it as root, which " + recipe.WritableCodeKey + " allows"
	}
	for _, source := range found {
		what := "the template of "
		if !strings.Contains(source, " ") {
			what = "the SLS file "
		}
		fmt.Fprintf(p.Err,
			"note: "+what+
				"%s lies where the project's user may change it: %s\n", source, so)
	}
	return err
}

// isTree returns an error if the path is not a directory.
func isTree(tree string) error {
	info, err := os.Stat(tree)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is not a directory", tree)
	}
	return fmt.Errorf("there is no tree: %w", err)
}

// haveDirectories returns an error for outputs whose directories do not exist, before anything is built.
func haveDirectories(outputs []string) error {
	var problems []error
	for _, output := range outputs {
		if is, err := walk.Directory(filepath.Dir(output)); err != nil {
			problems = append(problems, fmt.Errorf("%s cannot be written: %w", output, err))
		} else if !is {
			problems = append(problems, fmt.Errorf("%s cannot be written: %s is not a directory", output, filepath.Dir(output)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return diag.Usage.Hint(errors.Join(problems...), "make the directory first")
}

// buildError sets the exit code of errors that are the user's mistake.
func buildError(err error) error {
	var mistake *pipeline.Mistake
	if errors.As(err, &mistake) {
		return exit.WithCode(exit.Usage, err)
	}
	return err
}

// epoch returns the time in SOURCE_DATE_EPOCH, which all files get; zero if it is not set.
func (p *program) epoch() (time.Time, error) {
	epoch := p.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{},
			exit.WithCode(exit.Usage, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and a number of seconds was expected", epoch))
	}
	return time.Unix(seconds, 0), nil
}

// cache returns the directory in which base systems are kept between builds.
func (p *program) cache() string {
	if dir := p.Getenv("CORPUS_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "corpus", "bases")
}

func (p *program) checkBuild(ctx context.Context, request pipeline.Request) (made built, err error) {
	if len(request.Outputs) == 0 {
		request.Outputs = []string{filepath.Base(request.Source) + ".tar.zst"} // names the log of a build that fails
	}
	names, err := pipeline.Different(ctx, request)
	if err != nil {
		return made, buildError(err)
	}
	if len(names) > 0 {
		return made, diag.Build.Hint(fmt.Errorf("two builds of the same tree differ in %s", strings.Join(names, ", ")),
			"find out which step writes a time, a path or a random order into them")
	}
	return built{map[string]any{"differences": []string{}}, "two builds of the same tree are the same"}, nil
}

// pack packs a tree unchanged.
func (p *program) pack(ctx context.Context, tree string, how buildHow, options packaging.Options) (made built,
	err error) {
	out := how.outputs[0]
	if f, err := artifact.FormatOf(out); err != nil || f != artifact.TarZst {
		return made, exit.WithCode(exit.Usage,
			diag.Usage.Hint(fmt.Errorf("%s: corpus build does not write that format", out),
				"name it .tar.zst, .deb, .rpm or .oci.tar"))
	}
	var summary packaging.Summary
	show, done := p.progress("packing")
	if show != nil {
		options.Progress = func(done, total int64) { show(filepath.Base(out), done, total) }
	}
	write := durable.Write
	if how.beside != nil {
		write = how.beside.Write
	}
	err = write(out, 0o644, func(w io.Writer) (err error) {
		summary, err = packaging.Build(ctx, tree, w, options)
		return err
	})
	done()
	if err != nil {
		return made, err
	}
	if summary.Mixed != "" {
		fmt.Fprintf(p.Err, "note: hosts of every architecture take the release: %s\n", diag.OneLine(summary.Mixed))
	}
	for _, name := range summary.LeftOut {
		p.explain("left out %s", name)
	}
	info, err := os.Stat(out)
	if err != nil {
		return made, err
	}
	return built{struct {
		packaging.Summary
		File string `json:"file"`
		Size int64  `json:"size"`
	}{summary, out, info.Size()}, fmt.Sprintf("built %s: %s, %s packed to %s", out, diag.Count(summary.Files, "file"),
		diag.Size(summary.Bytes), diag.Size(info.Size()))}, nil
}
