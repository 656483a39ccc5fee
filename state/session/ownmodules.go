package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ownModules has the Python modules of the state tree. newOwnModules finds them by listing a few directories. The
// worker that runs them is started when a module is first needed.
type ownModules struct {
	session *Session
	worker  *python.Worker

	mu     sync.Mutex
	found  map[string]map[string]string               // files by kind and name
	claims map[string]map[string][]string             // the files of a kind that may claim another name, by name
	lists  map[string]map[string]map[string]signature // functions by kind, module and name
	all    map[string]bool                            // kinds of which every module has been listed
	broken error                                      // the directories of the tree cannot be read
	failed error                                      // the last error of a method that cannot return one
}

// signature has the parameters and the docstring of a Python function.
type signature struct {
	parameters []function.Parameter
	doc        string
	module     string // the docstring of its module
	output     string // the format that its module names for it in __outputter__; "" for none
}

// packagesDir is the directory of the packages that modules import by their names, as from a directory of PYTHONPATH.
const packagesDir = "_python"

// kinds returns the directory of each kind of module in a tree, with the names of Salt's loader.
func kinds() map[string]string {
	return map[string]string{"modules": "_modules", "states": "_states", "grains": "_grains", "utils": "_utils",
		"pillar": "_pillar", "renderers": "_renderers", "returners": "_returners", "outputters": "_output", "tops": "_tops",
		"python": packagesDir}
}

// loadTime is the time limit for loading all modules. The worker limits the time of each of them.
const loadTime = 5 * time.Minute

func newOwnModules(s *Session) *ownModules {
	o := &ownModules{session: s, found: map[string]map[string]string{}, claims: map[string]map[string][]string{},
		lists: map[string]map[string]map[string]signature{}, all: map[string]bool{}}
	for kind, dir := range kinds() {
		files, err := ModuleFiles(s.Trees, s.states, dir)
		if err != nil {
			o.broken = err // returned when a module is first needed
			continue
		}
		if len(files) > 0 {
			o.found[kind] = files
		}
	}
	var packages []string
	for _, env := range s.states.Envs() {
		dirs, err := s.states.FindDir(env, packagesDir)
		if err != nil {
			o.broken = err
		}
		packages = append(packages, dirs...)
	}
	o.worker = python.New(python.Options{Host: s.Host, Asks: o, Modules: o.known().Plain(), Opts: s.workerOptions(),
		Packages: packages, RealSalt: s.flag("python.salt", false)})
	return o
}

// known returns the files of the modules by kind and name, in the form for the worker.
func (o *ownModules) known() *value.Map {
	known := value.NewMap()
	for kind, files := range o.found {
		names := value.NewMap()
		for name, file := range files {
			names.Set(name, file)
		}
		known.Set(kind, names.Plain())
	}
	return known
}

// Close ends the worker.
func (o *ownModules) Close() { o.worker.Close() }

// workerOptions returns the options for modules. It leaves out the grains, which are sent separately.
func (s *Session) workerOptions() *value.Map {
	m := s.options.Clone()
	m.Delete("grains")
	if top, ok := m.Value("state_top").(string); ok {
		m.Set("state_top", strings.TrimPrefix(top, "salt://"))
	}
	return m
}

// ModuleFiles returns the files of the modules in the directories dir of all environments of a tree, by the name of the
// module. If several files have a name, it returns the first.
func ModuleFiles(files roots.Files, tree *roots.Roots, dir string) (map[string]string, error) {
	found := map[string]string{}
	for _, env := range tree.Envs() {
		dirs, err := tree.FindDir(env, dir)
		if err != nil {
			return nil, err
		}
		for _, d := range dirs {
			if err := modulesIn(files, d, found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// modulesIn adds the modules of a directory: files NAME.py, and directories with an __init__.py.
func modulesIn(files roots.Files, dir string, found map[string]string) error {
	names, err := files.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for Python modules: %w", err)
	}
	for _, entry := range names {
		name, isFile := strings.CutSuffix(entry, ".py")
		file := path.Join(dir, entry)
		if !isFile {
			file = path.Join(file, "__init__.py")
			if _, err := files.Stat(file); err != nil {
				if _, err := walk.Found(err); err != nil && !strings.Contains(entry, ".") {
					return fmt.Errorf("looking for Python modules: %w", err)
				}
				continue
			}
		}
		private := strings.HasPrefix(name, "_") && path.Base(dir) != packagesDir
		if _, taken := found[name]; !taken && !private && !strings.HasPrefix(name, ".") {
			found[name] = file
		}
	}
	return nil
}

// has reports whether the tree has modules of a kind.
func (o *ownModules) has(kind string) bool { return o != nil && len(o.found[kind]) > 0 }

// hides reports whether a file of the tree has the name of a module. The file then replaces the agent's own module.
func (o *ownModules) hides(kind, module string) bool {
	_, has := o.found[kind][module]
	return has
}

// namesItself matches the names that a module sets for itself. Computed names are found only by listing all modules.
var namesItself = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:__virtualname__\s*=|return|__virtual_aliases__\s*=)\s*\(?\s*['"](\w+)['"]`)
})

// claimed reports whether a module of the tree may set this name for itself, whatever the name of its file.
func (o *ownModules) claimed(kind, module string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	names, done := o.claims[kind]
	if !done {
		names = map[string][]string{}
		for of, file := range o.found[kind] {
			data, err := o.session.Trees.ReadFile(file)
			if err != nil {
				continue // the worker requests the file as well, and reports the error
			}
			for _, m := range namesItself().FindAllSubmatch(data, -1) {
				if name := string(m[1]); name != of {
					names[name] = append(names[name], of)
				}
			}
		}
		o.claims[kind] = names
	}
	return len(names[module]) > 0
}

// module returns the functions of a module of the tree, or none if there is no such module.
func (o *ownModules) module(kind, name string) map[string]signature {
	if !o.has(kind) || !o.hides(kind, name) && !o.claimed(kind, name) {
		return nil
	}
	o.mu.Lock()
	list, done := o.lists[kind][name]
	o.mu.Unlock()
	if done {
		return list
	}
	return o.list(kind, name)[name]
}

// every returns the functions of all modules of a kind.
func (o *ownModules) every(kind string) map[string]map[string]signature {
	if !o.has(kind) {
		return nil
	}
	o.mu.Lock()
	done := o.all[kind]
	o.mu.Unlock()
	if !done {
		o.list(kind, "")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.lists[kind])
}

// list requests the functions of a module, or of all, from the worker.
func (o *ownModules) list(kind, name string) map[string]map[string]signature {
	ctx, cancel := context.WithTimeout(o.session.Until, loadTime)
	defer cancel()
	v, err := o.worker.Do(ctx, "list", value.NewMap("kind", kind, "module", name))
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || o.failed == nil { // a question after the end of the session says less than the first
		o.failed = err
	}
	if err != nil {
		return nil
	}
	found := map[string]map[string]signature{}
	if name != "" {
		found[name] = map[string]signature{}
	}
	functions, _ := v.(*value.Map)
	for full, about := range functions.All() {
		module, fun, _ := strings.Cut(value.Str(full), ".")
		if found[module] == nil {
			found[module] = map[string]signature{}
		}
		found[module][fun] = readSignature(about)
	}
	if o.lists[kind] == nil {
		o.lists[kind] = map[string]map[string]signature{}
	}
	maps.Copy(o.lists[kind], found)
	o.all[kind] = o.all[kind] || name == ""
	return found
}

func readSignature(v any) signature {
	m, _ := v.(*value.Map)
	s := signature{doc: value.Str(m.Value("doc")), module: value.Str(m.Value("module")),
		output: value.Str(m.Value("output"))}
	list, _ := m.Value("signature").(*value.List)
	if list == nil {
		return s
	}
	for _, item := range list.Items {
		pair, _ := item.(*value.List)
		if pair == nil || pair.Len() != 4 {
			continue
		}
		p := function.Parameter{Name: value.Str(pair.Items[0]), Optional: pair.Items[1] != "required", Default: pair.Items[2]}
		switch pair.Items[1] {
		case "rest":
			p.Kind = function.Rest
		case "keywords":
			p.Kind = function.Keywords
		default:
			if value.Truth(pair.Items[3]) {
				p.Kind = function.Named
			}
		}
		s.parameters = append(s.parameters, p)
	}
	return s
}

// described returns the functions of all modules of a kind in the tree.
func (o *ownModules) described(kind string) map[string]function.Described {
	all := map[string]function.Described{}
	for module, functions := range o.every(kind) {
		for fun, s := range functions {
			all[module+"."+fun] = function.Described{Parameters: s.parameters, Doc: s.doc, Module: s.module}
		}
	}
	return all
}

// why returns the reason why a function does not exist, in Salt's words, or nil if the tree has no such module.
func (o *ownModules) why(kind, name string) error {
	module, _, _ := strings.Cut(name, ".")
	switch {
	case o.broken != nil:
		return o.broken
	case !o.has(kind) || !o.hides(kind, module) && !o.claimed(kind, module):
		return nil
	}
	ctx, cancel := context.WithTimeout(o.session.Until, loadTime)
	defer cancel()
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	if failed != nil {
		return failed
	}
	broken, err := o.reason(ctx, kind, name)
	if err != nil {
		return err
	}
	var names []string
	for fun := range o.module(kind, module) {
		names = append(names, module+"."+fun)
	}
	if hint := diag.DidYouMean(name, names); hint != "" {
		return diag.Python.Hint(broken, "%s", hint)
	}
	return diag.Python.Hint(broken, "see the tree's directory %s; docs/python.md says what modules "+
		"there are for", kinds()[kind])
}

// reason returns why a function does not exist. If the host is at fault for it that a file which may give the module
// was not loaded, that is the reason.
func (o *ownModules) reason(ctx context.Context, kind, name string) (why, err error) {
	module, fun, _ := strings.Cut(name, ".")
	o.mu.Lock()
	files := append([]string{module}, o.claims[kind][module]...)
	o.mu.Unlock()
	for _, file := range files {
		v, err := o.worker.Do(ctx, "why", value.NewMap("kind", kind, "name", file+"."+fun))
		if err != nil {
			return nil, err
		}
		if one := python.Failure(value.Str(v)); why == nil || diag.CauseOf(one) != nil {
			why = one
		}
	}
	return why, nil
}

// lost returns the error for which it is unknown whether the tree has a function that was not found: an error of the
// host, or the end of the run's time, while the modules were loaded.
func (o *ownModules) lost(kind, name string) error {
	err := o.why(kind, name)
	if _, overdue := errors.AsType[*python.Overdue](err); overdue || diag.CauseOf(err) != nil {
		return err
	}
	return nil
}

// call calls a function of the tree.
func (o *ownModules) call(ctx context.Context, kind, name string, args []any, kwargs *value.Map) (any, error) {
	if kwargs == nil {
		kwargs = value.NewMap()
	}
	if err := o.session.Host.RecordCommand(ctx, name+" (Python)"); err != nil {
		return nil, err
	}
	v, err := o.worker.Do(ctx, "call", value.NewMap("kind", kind, "name", name, "args", value.NewList(args...), "kwargs",
		kwargs.Clone().Plain()))
	o.session.Host.Acted(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// TreeFunctions has the functions of the agent and of the tree's modules. A file of the tree replaces the whole module
// of its name.
type TreeFunctions struct {
	function.Table
	own *ownModules
}

func (t TreeFunctions) find(name string) (own, hidden bool) {
	module, fun, _ := strings.Cut(name, ".")
	if !t.own.has("modules") {
		return false, false
	}
	if _, ok := t.own.module("modules", module)[fun]; ok {
		return true, true
	}
	if t.own.hides("modules", module) {
		return false, true
	}
	if !t.Table.Has(name) && !t.own.claimed("modules", module) {
		_, own = t.own.every("modules")[module][fun]
	}
	return own, own
}

// Call is part of Functions.
func (t TreeFunctions) Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	own, hidden := t.find(name)
	switch {
	case own:
		return t.own.call(ctx, "modules", name, args, kwargs)
	case hidden, !t.Table.Has(name):
		return nil, t.Unknown(name)
	}
	return t.Table.Call(ctx, name, args, kwargs)
}

// Has is part of Functions.
func (t TreeFunctions) Has(name string) bool {
	own, hidden := t.find(name)
	return own || !hidden && t.Table.Has(name)
}

// Lost is part of Functions.
func (t TreeFunctions) Lost(name string) error { return t.own.lost("modules", name) }

// Names is part of Functions.
func (t TreeFunctions) Names() []string {
	names := t.Table.Names()
	if !t.own.has("modules") {
		return names
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		module, _, _ := strings.Cut(name, ".")
		return t.own.hides("modules", module)
	})
	for module, functions := range t.own.every("modules") {
		for fun := range functions {
			names = append(names, module+"."+fun)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Unknown is part of Functions.
func (t TreeFunctions) Unknown(name string) error {
	if err := t.own.why("modules", name); err != nil {
		return err
	}
	return t.Table.Unknown(name)
}

// Parameters returns the parameters of a function.
func (t TreeFunctions) Parameters(name string) ([]function.Parameter, error) {
	module, fun, _ := strings.Cut(name, ".")
	if own, _ := t.find(name); own {
		if s, ok := t.own.module("modules", module)[fun]; ok {
			return s.parameters, nil
		}
		return t.own.every("modules")[module][fun].parameters, nil
	}
	f, ok := t.Table[name]
	if !ok {
		return nil, t.Unknown(name)
	}
	return f.Parameters()
}
