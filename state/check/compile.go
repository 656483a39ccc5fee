package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Finding is a mistake, or something that cannot be checked without a host.
type Finding struct {
	*diag.Diagnostic
	Note    bool     // not a mistake: a part of the tree that only a host can compile
	Minions []string // the affected hosts; empty if all are
}

// Compiled describes the program that the trees compile to for one host.
type Compiled struct {
	ID       string
	States   int      // number of states
	SLS      []string // the SLS files that they come from
	Findings []Finding

	// Arguments are the arguments of each state as JSON, by the function, ID and name of the state.
	Arguments map[string]map[string]string
}

// Report is the result of checking trees.
type Report struct {
	Hosts    []Compiled
	Findings []Finding // each once, sorted by place
	Unused   []string  // SLS files that none of the hosts gets; empty if that is unknown

	UnusedPillar []string // those of the pillar
}

// Mistakes returns the findings that are mistakes.
func (r *Report) Mistakes() (all []Finding) {
	for _, f := range r.Findings {
		if !f.Note {
			all = append(all, f)
		}
	}
	return all
}

// Source is a tree to check.
type Source struct {
	Dir    string // absolute
	Files  fs.FS  // what is below Dir; links that lead out of it are errors, as with [os.Root]
	Pillar bool   // the directory is a root of the pillar, and has no states
}

// Trees checks trees as [Tree] does, and compiles what their top files assign to each host. The first tree in which a
// file is found wins, as with a service's release before base. Mistakes in the trees are in the report; an error means
// that the check itself failed.
func Trees(ctx context.Context, trees []Source, minions []Minion) (*Report, error) {
	c := &compiler{}
	if err := c.open(ctx, trees); err != nil {
		return nil, err
	}
	empty, done, err := durable.Scratch()
	if err != nil {
		return nil, err
	}
	defer done()
	if c.host, err = host.Open(host.Options{Root: empty, Commands: noCommands{}}, host.Caches{}); err != nil {
		return nil, err
	}
	if len(c.states) == 0 {
		minions = nil
	}
	for _, m := range minions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.report.Hosts = append(c.report.Hosts, c.compile(ctx, m))
	}
	c.gather()
	return &c.report, nil
}

type compiler struct {
	host           *host.Host
	machine        host.Files
	states, pillar []string
	static         diag.List
	programs       [][2]string // the names and texts of files in Python
	own            map[string]bool
	sls            map[string]bool // the SLS files of all trees, and whether a host gets them
	pillarFiles    map[string]bool // those of the pillar
	unknown        bool            // it is unknown which files a host gets
	report         Report
}

// open finds the roots of the trees, and the mistakes in them that do not depend on a host.
func (c *compiler) open(ctx context.Context, trees []Source) error {
	here, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		return err
	}
	c.machine, c.own, c.sls, c.pillarFiles = here.Files, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, tree := range trees {
		if err := c.findLinksOut(tree); err != nil {
			return err
		}
	}
	if len(c.static) > 0 {
		return nil // their targets are not read
	}
	for _, tree := range trees {
		if err := c.add(tree); err != nil {
			return err
		}
	}
	return c.parse(ctx, here)
}

// findLinksOut finds the links of a tree that lead out of it. Their targets belong to the machine of the caller, and
// messages about a target would show its content.
func (c *compiler) findLinksOut(tree Source) error {
	return fs.WalkDir(tree.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		_, err = fs.Stat(tree.Files, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.static.Add(diag.Pos{File: filepath.Join(tree.Dir, name)}, "this link leads out of the tree").
				WithHint(diag.Tree, "put the file into the tree; builds and hosts refuse such a link, too")
		}
		return nil
	})
}

func (c *compiler) add(tree Source) error {
	var states, pillars []string
	var err error
	if tree.Pillar {
		pillars = []string{"."}
	} else if states, err = existing(tree.Files, stateRoots()); err != nil {
		return err
	} else if pillars, err = existing(tree.Files, pillarRoots()); err != nil {
		return err
	} else if len(states) == 0 {
		states = []string{"."}
	}
	found, err := mistakes(tree.Files, states, pillars)
	if err != nil {
		return err
	}
	for _, d := range found {
		d.Pos.File = filepath.Join(tree.Dir, d.Pos.File)
		c.static = append(c.static, d)
	}
	for _, root := range states {
		c.states = append(c.states, filepath.Join(tree.Dir, root))
		if err := errors.Join(c.findOwn(tree.Files, root), listSLS(tree.Files, root, c.sls)); err != nil {
			return err
		}
	}
	if err := c.findPrograms(tree, slices.Concat(states, pillars)); err != nil {
		return err
	}
	for _, root := range pillars {
		c.pillar = append(c.pillar, filepath.Join(tree.Dir, root))
		if err := listSLS(tree.Files, root, c.pillarFiles); err != nil {
			return err
		}
	}
	return nil
}

// existing returns those of the names that are directories.
func existing(files fs.FS, names []string) (all []string, err error) {
	for _, name := range names {
		info, err := fs.Stat(files, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.IsDir():
			all = append(all, name)
		}
	}
	return all, nil
}

// findOwn reads the names of the functions of a tree's own states.
func (c *compiler) findOwn(files fs.FS, root string) error {
	entries, err := fs.ReadDir(files, path.Join(root, "_states"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		module, is := strings.CutSuffix(e.Name(), ".py")
		if !is {
			continue
		}
		text, err := fs.ReadFile(files, path.Join(root, "_states", e.Name()))
		if err != nil {
			return err
		}
		for _, name := range ownFunctions(module, string(text)) {
			c.own[name] = true
		}
	}
	return err
}

// listSLS adds the names of the SLS files of a tree to sls.
func listSLS(files fs.FS, root string, sls map[string]bool) error {
	return fs.WalkDir(files, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(file, root+"/")
		if name, is := strings.CutSuffix(name, ".sls"); is && name != "top" {
			sls[strings.TrimSuffix(strings.ReplaceAll(name, "/", "."), ".init")] = false
		}
		return nil
	})
}

func (c *compiler) compile(ctx context.Context, m Minion) Compiled {
	s := session.New(session.Settings{Host: c.host, Trees: c.machine, Tables: hostless{c.own}, ID: m.ID,
		Grains: value.Copy(m.Grains).(*value.Map), States: envs(c.states), Pillar: envs(c.pillar), TopRoots: true, Test: true,
		Until: ctx, Log: func(string, string) {}, PillarFile: func(name string) { c.pillarFiles[name] = true }})
	done := Compiled{ID: m.ID}
	program, problems := c.program(ctx, s)
	if program != nil {
		problems = append(problems, undeclared(program)...)
	}
	for _, d := range problems {
		done.Findings = append(done.Findings, newFinding(d, m.ID))
	}
	if program == nil {
		return done
	}
	done.States, done.Arguments = len(program.Steps), map[string]map[string]string{}
	for _, step := range program.Steps {
		done.Arguments[titleOf(step)] = argumentsOf(step)
		if name := value.Str(step.Chunk.Value("__sls__")); !slices.Contains(done.SLS, name) {
			done.SLS = append(done.SLS, name)
		}
	}
	return done
}

// titleOf returns the title of a state for people: its function and ID, and its name if that differs.
func titleOf(step *compile.Step) string {
	title := step.Function() + " " + step.ID()
	if step.Name() != step.ID() {
		title += " (" + step.Name() + ")"
	}
	return title
}

// argumentsOf returns the arguments that the author of a state wrote, as JSON by name.
func argumentsOf(step *compile.Step) map[string]string {
	all := map[string]string{}
	for _, name := range step.Chunk.Names() {
		if strings.HasPrefix(name, "__") || slices.Contains(ofEveryStep(), name) {
			continue
		}
		text, err := json.Marshal(step.Chunk.Value(name))
		if err != nil {
			text = []byte(value.Str(step.Chunk.Value(name)))
		}
		all[name] = string(text)
	}
	return all
}

// program compiles the SLS files that the top file assigns. Files that only a host can compile are left out, and states
// that depend on them are not checked.
func (c *compiler) program(ctx context.Context, s *session.Session) (*compile.Program, diag.List) {
	matches, err := s.Top(ctx)
	for _, m := range matches {
		for _, name := range m.SLS {
			c.sls[name] = true
		}
	}
	if err != nil {
		return nil, c.unassigned(diagnostics(err))
	}
	high, err := s.High(ctx, matches)
	left := diagnostics(err)
	if high == nil || slices.ContainsFunc(left, func(d *diag.Diagnostic) bool { return !d.HostOnly }) {
		return nil, left
	}
	program, err := s.Compile(high)
	switch {
	case len(left) > 0 && err != nil:
		return nil, left
	case err != nil:
		return nil, diagnostics(err)
	case len(left) > 0:
		return program, left
	}
	return program, slices.Clone(program.Problems)
}

// unassigned returns the errors of a pillar or a top file. If only hosts know what it says, a note says that the states
// were not compiled, and what the host gets is unknown.
func (c *compiler) unassigned(problems diag.List) diag.List {
	if slices.ContainsFunc(problems, func(d *diag.Diagnostic) bool { return !d.HostOnly }) {
		return problems
	}
	c.unknown = true
	what := "top file"
	if slices.ContainsFunc(problems, func(d *diag.Diagnostic) bool { return c.ofPillar(d.Pos.File) }) {
		what = "pillar"
	}
	note := &diag.Diagnostic{HostOnly: true, Message: fmt.Sprintf(
		"the states of hosts whose %s depends on what only hosts know were not compiled", what)}
	return append(slices.Clone(problems), note.WithHint(diag.Call,
		"`corpus-agent deploy --test` on a host compiles them"))
}

// ofPillar reports whether a file is in a root of the pillar.
func (c *compiler) ofPillar(file string) bool {
	return slices.ContainsFunc(c.pillar, func(root string) bool {
		below, err := filepath.Rel(root, file)
		return err == nil && filepath.IsLocal(below)
	})
}

func newFinding(d *diag.Diagnostic, host string) Finding {
	return Finding{Diagnostic: d, Note: d.HostOnly, Minions: []string{host}}
}

func envs(dirs []string) []roots.Env {
	if len(dirs) == 0 {
		return nil
	}
	return []roots.Env{{Name: "base", Dirs: dirs}}
}

// diagnostics returns the parts of an error, with their positions if they have any. It returns nil for nil.
func diagnostics(err error) (all diag.List) {
	if err == nil {
		return nil
	}
	var list diag.List
	list.AddError(diag.Pos{}, err)
	if sorted, is := errors.AsType[diag.List](list.Err()); is {
		return sorted
	}
	return list
}

// undeclared returns the arguments of a program that their functions do not have.
func undeclared(p *compile.Program) (problems diag.List) {
	for _, step := range p.Steps {
		known, ok := functions()[step.Function()]
		if !ok || slices.Contains(known, "*") {
			continue
		}
		for _, name := range step.Chunk.Names() {
			if slices.Contains(known, name) || general(name) || slices.Contains(ofEveryStep(), name) {
				continue
			}
			noArgument(&problems, step.At(name), step.Function(), name, known)
		}
	}
	return problems
}

// ofEveryStep lists the arguments that the compiler adds to every step.
func ofEveryStep() []string { return []string{"state", "fun", "name", "order"} }

// gather merges the findings that several hosts share, sorts all, and lists the SLS files that no host gets.
func (c *compiler) gather() {
	type key struct {
		pos     diag.Pos
		message string
	}
	at := map[key]int{}
	add := func(f Finding) {
		k := key{f.Pos, f.Message}
		if strings.Contains(f.Message, "no such state function") {
			k.message = "" // the check of all files and the compiler use different words
		}
		i, known := at[k]
		if !known {
			at[k] = len(c.report.Findings)
			c.report.Findings = append(c.report.Findings, f)
			return
		}
		if len(c.report.Findings[i].Minions) > 0 {
			c.report.Findings[i].Minions = append(c.report.Findings[i].Minions, f.Minions...)
		}
	}
	for _, d := range c.static {
		add(Finding{Diagnostic: d, Note: d.HostOnly})
	}
	for _, h := range c.report.Hosts {
		for _, f := range h.Findings {
			f.Minions = slices.Clone(f.Minions)
			add(f)
		}
		for _, name := range h.SLS {
			c.sls[name] = true
		}
	}
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	if !c.unknown {
		c.report.Unused, c.report.UnusedPillar = unused(c.sls), unused(c.pillarFiles)
	}
}

// unused returns the sorted names of SLS files that no host gets.
func unused(files map[string]bool) (names []string) {
	for name, used := range files {
		if !used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
