// Package pipeline takes a source tree to everything that is made of it: the artifact, packages, an
// image, and the statements about them.
//
// One build gives all of them, from one staged tree, so that they hold the same files and name the
// same content digest. Nothing is left under its final name unless everything was made; a build that
// fails leaves its log.
package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/builder"
	"github.com/corpus-agent/corpus-agent/packaging/deb"
	"github.com/corpus-agent/corpus-agent/packaging/oci"
	"github.com/corpus-agent/corpus-agent/packaging/statement"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Request is one build.
type Request struct {
	Source  string   // the tree
	Outputs []string // files to write: .tar.zst, .deb, .rpm, .oci.tar
	Version string   // over what the recipe and git say
	Cache   string   // where base systems are kept
	Tool    string   // version of this program
	Time    time.Time
	Log     io.Writer // told what builders print as well, or nil
}

// Result is what a build made.
type Result struct {
	needs.Release
	packaging.Summary
	Outputs    []string `json:"outputs"`
	Statements []string `json:"statements"`
}

// Mistake is an error in what was asked for, or in the tree's recipe, and not in the build.
type Mistake struct{ Err error }

func (m *Mistake) Error() string { return m.Err.Error() }
func (m *Mistake) Unwrap() error { return m.Err }

// build is a build under way.
type build struct {
	Request
	recipe recipe.Recipe
	result Result
	work   string // scratch directory, removed at the end
	stage  string
	base   string // root of the base system, "" for this machine
	log    *bytes.Buffer
}

// Make builds a tree and writes the outputs. A build that fails leaves none of them, and its log
// beside the first one.
func Make(ctx context.Context, r Request) (Result, error) {
	work, err := os.MkdirTemp("", "corpus-build-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(work)
	b := newBuild(r, work)
	err = b.staged(ctx)
	if err == nil {
		err = b.write(ctx)
	}
	if err != nil {
		return Result{}, b.keepLog(err)
	}
	return b.result, nil
}

func newBuild(r Request, work string) *build {
	return &build{Request: r, work: work, stage: filepath.Join(work, "release"), log: &bytes.Buffer{}}
}

// staged makes the release and no output.
func (b *build) staged(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return &Mistake{err}
	}
	return b.run(ctx)
}

// keepLog puts what builders printed beside the output that was not made.
func (b *build) keepLog(err error) error {
	if b.log.Len() == 0 {
		return err
	}
	log := b.Outputs[0] + ".log"
	if logErr := os.WriteFile(log, b.log.Bytes(), 0o644); logErr != nil {
		return err
	}
	return fmt.Errorf("%w (its log is %s)", err, log)
}

// Different builds the tree twice, in two places, and names the files that differ. A build that can
// be repeated names none.
func Different(ctx context.Context, r Request) ([]string, error) {
	var listings [2]map[string]string
	for i := range listings {
		work, err := os.MkdirTemp("", "corpus-check-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(work)
		b := newBuild(r, work)
		if err := b.staged(ctx); err != nil {
			return nil, b.keepLog(err)
		}
		if listings[i], err = statement.Listing(os.DirFS(b.stage)); err != nil {
			return nil, err
		}
	}
	var names []string
	for name, digest := range listings[0] {
		if listings[1][name] != digest {
			names = append(names, name)
		}
		delete(listings[1], name)
	}
	for name := range listings[1] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// prepare reads the recipe and decides on name and version.
func (b *build) prepare(ctx context.Context) error {
	var err error
	if err = b.checkOutputs(); err != nil {
		return err
	}
	if b.recipe, err = recipe.LoadStrict(os.DirFS(b.Source)); err != nil {
		return err
	}
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return err
	}
	b.result.Name = b.recipe.Name
	if b.result.Name == "" {
		b.result.Name = filepath.Base(source)
	}
	b.result.Builder, b.result.Base = b.recipe.Builder, b.recipe.Build.Base
	if b.recipe.Prefix == "" {
		b.recipe.Prefix = "/opt/" + b.result.Name
	}
	b.result.Version, err = b.version(ctx)
	return errors.Join(err, b.checkNames())
}

func (b *build) version(ctx context.Context) (string, error) {
	switch {
	case b.Version != "":
		return b.Version, nil
	case b.recipe.Version != "" && b.recipe.Version != "git":
		return b.recipe.Version, nil
	}
	out, err := exec.CommandContext(ctx, "git", "-C", b.Source, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "", diag.WithHint(errors.New("the tree has no version: git does not describe it"), "give --version, write version into corpus.yaml, or commit and tag the tree")
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), nil
}

// formats are the endings of outputs.
func formats() []string { return []string{".tar.zst", ".deb", ".rpm", ".oci.tar"} }

func format(output string) string {
	for _, f := range formats() {
		if strings.HasSuffix(output, f) {
			return f
		}
	}
	return ""
}

func (b *build) checkOutputs() error {
	for _, output := range b.Outputs {
		if format(output) == "" {
			return diag.WithHint(fmt.Errorf("%s: corpus build does not write that form", output), "end it in one of %s", strings.Join(formats(), ", "))
		}
	}
	return nil
}

// checkNames finds paths that the recipe names and the tree does not have, all at once.
func (b *build) checkNames() error {
	names := append([]string{}, b.recipe.Units...)
	for _, t := range b.recipe.Templates {
		names = append(names, t.Source)
	}
	p, build := b.recipe.Package, b.recipe.Build
	for _, name := range []string{p.PostInstall, p.PreRemove, build.Requirements, build.Wheels} {
		if name != "" {
			names = append(names, name)
		}
	}
	var problems diag.List
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(b.Source, name)); err != nil {
			problems.Add(diag.Pos{File: recipe.Name}, "it names %s, which is not in the tree", name).WithHint("add the file, or mend the name")
		}
	}
	return problems.Err()
}

// run makes the release in the stage.
func (b *build) run(ctx context.Context) error {
	source := filepath.Join(b.work, "source")
	skip, err := b.made()
	if err != nil {
		return err
	}
	if err := builder.CopyTree(b.Source, source, func(name string) bool { return skip[name] }); err != nil {
		return err
	}
	if err := os.MkdirAll(b.stage, 0o755); err != nil {
		return err
	}
	job := builder.Job{Recipe: b.recipe, Source: source, Stage: b.stage, Prefix: b.recipe.Prefix, Log: b.logger(), Run: builder.Here{}}
	if b.recipe.Build.Base != "" {
		if err := b.enterBase(ctx, &job); err != nil {
			return err
		}
	}
	if err := builder.Build(ctx, job); err != nil {
		return err
	}
	b.stage = job.Stage
	if err := packaging.Drop(b.stage, b.recipe.LeaveOut); err != nil {
		return err
	}
	if err := packaging.Check(ctx, b.stage, packaging.Options{Allow: b.recipe.Allow}); err != nil {
		return err
	}
	return b.describe()
}

// made are the paths in the tree that are no source: what a build leaves there.
func (b *build) made() (map[string]bool, error) {
	skip := map[string]bool{".git": true}
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return nil, err
	}
	for i, output := range b.Outputs {
		file, err := filepath.Abs(output)
		if err != nil {
			return nil, err
		}
		names := []string{file}
		if i == 0 {
			names = append(names, file+".log")
			for _, ending := range statementEndings() {
				names = append(names, strings.TrimSuffix(file, format(file))+ending)
			}
		}
		for _, name := range names {
			if rel, err := filepath.Rel(source, name); err == nil {
				skip[rel] = true
			}
		}
	}
	return skip, nil
}

// statementEndings are those of the list of contents and of the provenance.
func statementEndings() []string { return []string{".spdx.json", ".provenance.json"} }

func (b *build) logger() io.Writer {
	if b.Log == nil {
		return b.log
	}
	return io.MultiWriter(b.log, b.Log)
}

// enterBase has the job work inside of its base system.
func (b *build) enterBase(ctx context.Context, job *builder.Job) error {
	base, err := builder.OpenBase(ctx, b.recipe.Build.Base, b.recipe.Build.Needs, b.Cache, b.work, b.logger())
	if err != nil {
		return err
	}
	if err := base.Put(job.Source, "/build/source"); err != nil {
		return err
	}
	b.base = base.Root
	job.Run, job.Source, job.Stage = base, filepath.Join(base.Root, "build/source"), filepath.Join(base.Root, "build/release")
	return os.MkdirAll(job.Stage, 0o755)
}

// describe writes into the release what it is.
func (b *build) describe() error {
	release := os.DirFS(b.stage)
	var err error
	if b.result.Content, err = statement.Content(release, needs.File); err != nil {
		return err
	}
	if b.result.Needs, err = needs.Of(release); err != nil {
		return err
	}
	if b.recipe.Builder == "python" {
		b.result.Needs.Programs = append(b.result.Needs.Programs, homePython(b.stage)...)
	}
	data, err := json.MarshalIndent(b.result.Release, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(b.stage, needs.File)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// homePython is the interpreter whose library a virtualenv goes on using.
func homePython(stage string) []string {
	data, err := os.ReadFile(filepath.Join(stage, "venv/pyvenv.cfg"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && key == "executable" {
			return []string{value}
		}
	}
	return nil
}

// write makes every output under another name, and gives them their names when all are made.
func (b *build) write(ctx context.Context) error {
	made := map[string]string{}
	digests := map[string]string{}
	for i, output := range b.Outputs {
		temp := filepath.Join(b.work, fmt.Sprintf("output-%d", i))
		digest, err := b.writeOne(ctx, output, temp)
		if err != nil {
			return err
		}
		made[output], digests[filepath.Base(output)] = temp, digest
	}
	statements, err := b.statements(ctx, digests)
	if err != nil {
		return err
	}
	for _, output := range b.Outputs {
		if err := install(made[output], output); err != nil {
			return err
		}
	}
	for name, data := range statements {
		if err := durable.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	b.result.Outputs = b.Outputs
	return nil
}

func (b *build) writeOne(ctx context.Context, output, temp string) (string, error) {
	f, err := os.Create(temp)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = b.pack(ctx, format(output), io.MultiWriter(f, sum))
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

func (b *build) pack(ctx context.Context, format string, w io.Writer) error {
	switch format {
	case ".deb", ".rpm":
		return deb.Write(w, deb.Request{
			Format: format[1:], Tree: b.stage, Recipe: b.recipe, Name: b.result.Name, Version: b.result.Version,
			Prefix: b.recipe.Prefix, Arch: b.result.Needs.Arch, Content: b.result.Content, Time: b.Time,
		})
	case ".oci.tar":
		arch := b.result.Needs.Arch
		if arch == "" {
			arch = runtime.GOARCH
		}
		return oci.Write(w, oci.Request{
			Tree: b.stage, Prefix: b.recipe.Prefix, Name: b.result.Name, Version: b.result.Version, Arch: arch,
			Content: b.result.Content, Command: b.recipe.Package.Command, Time: b.Time,
		}, b.work)
	}
	summary, err := packaging.Build(ctx, b.stage, w, packaging.Options{Time: b.Time, Allow: b.recipe.Allow})
	b.result.Summary = summary
	return err
}

// install moves a finished file to its place, over file systems if need be.
func install(from, to string) error {
	return durable.Write(to, 0o644, func(w io.Writer) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// statements are the files that go beside the first output, by name.
func (b *build) statements(ctx context.Context, digests map[string]string) (map[string][]byte, error) {
	about := statement.About{
		Name: b.result.Name, Version: b.result.Version, Content: b.result.Content, Builder: b.recipe.Builder, Base: b.recipe.Build.Base,
		Source: commit(ctx, b.Source), Tool: b.Tool, Outputs: digests,
	}
	list, err := statement.SPDX(about, os.DirFS(b.stage))
	if err != nil {
		return nil, err
	}
	provenance, err := statement.Provenance(about)
	if err != nil {
		return nil, err
	}
	first := strings.TrimSuffix(b.Outputs[0], format(b.Outputs[0]))
	b.result.Statements = []string{first + ".spdx.json", first + ".provenance.json"}
	return map[string][]byte{first + ".spdx.json": list, first + ".provenance.json": provenance}, nil
}

// commit names the source's commit, with the place it is fetched from when git knows one.
func commit(ctx context.Context, tree string) string {
	head, err := exec.CommandContext(ctx, "git", "-C", tree, "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return "git:" + strings.TrimSpace(string(head))
}
