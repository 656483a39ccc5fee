package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// World is part of python.Asker.
func (o *ownModules) World() *value.Map {
	pillar := o.session.pillar
	if pillar == nil {
		pillar = value.NewMap()
	}
	return value.NewMap("grains", o.session.Grains, "pillar", pillar)
}

// Ask is part of python.Asker. It answers requests of modules while they run.
func (o *ownModules) Ask(ctx context.Context, q *value.Map) (any, error) {
	name, _ := q.Value("name").(string)
	kind, _ := q.Value("kind").(string)
	args, _ := q.Value("args").(*value.List)
	kwargs, _ := q.Value("kwargs").(*value.Map)
	if args == nil {
		args = value.NewList()
	}
	s := o.session
	switch q.Value("ask") {
	case "source":
		return o.source(kind, name)
	case "has":
		return o.agentHas(kind, name), nil
	case "names":
		if kind == "states" {
			return value.Strings(s.registry().Functions()...), nil
		}
		return value.Strings(append(s.agentActions.Names(), StateFunctions()...)...), nil
	case "salt":
		return o.callAgent(ctx, name, args.Items, kwargs)
	case "state":
		return o.runState(ctx, name, args, kwargs)
	case "retcode":
		code, _ := q.Value("code").(int)
		s.retcode = code
		return nil, nil
	case "log":
		s.log(value.Str(q.Value("level")), value.Str(q.Value("message")))
		return nil, nil
	case "yaml":
		doc, err := yaml.LoadString(value.Str(q.Value("text")), "the text")
		if err != nil {
			return nil, err
		}
		return doc.Value, nil
	case "dump":
		style := yaml.Mixed // default_flow_style=None, which is Salt's default
		switch flow := q.Value("flow"); {
		case value.Truth(flow):
			style = yaml.Flow
		case flow != nil:
			style = yaml.Block
		}
		return yaml.Dump(q.Value("data"), yaml.DumpOptions{Collections: style, Sort: yaml.SortPlain}), nil
	case "import": // the text of a file that a renderer runs
		facts := s.facts()
		return facts.TrustedText(value.Str(q.Value("url")), value.Str(q.Value("env")))
	case "render":
		return o.renderFor(ctx, q)
	case "jinja":
		vars := s.vars(value.Str(q.Value("env")), s.pillar)
		more, _ := q.Value("vars").(*value.Map)
		vars.Update(more)
		path := value.Str(q.Value("path"))
		return s.renderer.Text(withTree(ctx, s.states), "jinja", render.Source{Name: path, File: path,
			Env: value.Str(q.Value("env")), Text: value.Str(q.Value("text"))}, vars)
	}
	return nil, fmt.Errorf("a module sent the unknown request %s", value.Repr(q.Value("ask")))
}

// source returns the bytes of a module, whose encoding Python detects. A file that another user can change is refused.
func (o *ownModules) source(kind, name string) (any, error) {
	name, part, isPart := strings.Cut(name, "/")
	file, ok := o.found[kind][name]
	if !ok {
		return nil, fmt.Errorf("the tree has no module %s in %s", name, kinds()[kind])
	}
	if isPart {
		var err error
		if file, err = o.partOf(file, part); file == "" || err != nil {
			return nil, err
		}
	}
	data, err := o.session.states.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return value.NewMap("path", file, "text", data).Plain(), nil
}

// partOf returns the file that a dotted import from a package refers to, or "" if there is none. part has slashes
// instead of dots.
func (o *ownModules) partOf(file, part string) (string, error) {
	dir, isPackage := strings.CutSuffix(file, "/__init__.py")
	if !isPackage {
		return "", nil
	}
	for _, candidate := range []string{path.Join(dir, part, "__init__.py"), path.Join(dir, part+".py")} {
		info, err := o.session.Trees.Stat(candidate)
		found, err := walk.Found(err)
		if err != nil {
			return "", fmt.Errorf("looking for a Python module: %w", err)
		}
		if found && info.IsRegular() {
			return candidate, nil
		}
	}
	return "", nil
}

// agentHas reports whether the agent itself has a function or a state.
func (o *ownModules) agentHas(kind, name string) bool {
	if kind == "states" {
		state, fun, _ := strings.Cut(name, ".")
		return o.session.registry().Has(state, fun)
	}
	return o.session.agentActions.Has(name) || stateFunctions()[name] != nil
}

// callAgent calls a function of the agent for a module.
func (o *ownModules) callAgent(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	if kwargs == nil {
		kwargs = value.NewMap()
	}
	o.session.Host.Acted(ctx)
	if run, ok := stateFunctions()[name]; ok {
		own, err := o.session.with(kwargs)
		if err != nil {
			return nil, err
		}
		defer own.Close()
		answer, err := run(&caller{Session: own, ctx: ctx, args: args, kwargs: kwargs})
		return answer.Value, err
	}
	return o.session.agentActions.Call(ctx, name, args, kwargs)
}

// runState applies a state for a module, and returns its result.
func (o *ownModules) runState(ctx context.Context, name string, args *value.List, kwargs *value.Map) (any, error) {
	state, fun, dotted := strings.Cut(name, ".")
	if !dotted {
		return nil, fmt.Errorf("%q is not a state function", name)
	}
	s := o.session
	o.session.Host.Acted(ctx)
	id := kwargs.Value("name")
	if args.Len() > 0 {
		id = args.Items[0]
	}
	if args.Len() > 1 || id == nil {
		return nil, value.Raise("TypeError", "%s takes its name, and all other arguments by name", name)
	}
	list := value.NewList(fun, value.NewMap("name", id))
	runner := s.runner(nil)
	for key, v := range kwargs.All() {
		switch key {
		case "name", "__id__", "__sls__", "__env__":
		case "test":
			runner.Test = runner.Test || value.Truth(v)
		default:
			list.Append(value.NewMap(value.Str(key), v))
		}
	}
	if test, ok := ctx.Value(testKey{}).(bool); ok {
		runner.Test = test
	}
	shown := value.Str(id)
	high := &compile.High{Data: value.NewMap(shown, value.NewMap(state, list, compile.KeySLS, nil, compile.KeyEnv,
		"base"))}
	p, err := s.Compile(high)
	if err != nil {
		return nil, err
	}
	all := runner.Run(ctx, p).All()
	if len(all) == 0 {
		return nil, errors.New("the state did not run")
	}
	return all[0].Map().Plain(), nil
}

// testKey is the context key of a bool that is true if the states that a state in Python calls must change nothing.
type testKey struct{}
