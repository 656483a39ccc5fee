// Package external has the sources of pillar data beside the pillar's files: the option ext_pillar, as a minion's
// configuration has it.
//
// A source gets the same arguments as Salt's module of its name, and returns a mapping, which the caller merges. A
// failed source is an error, so that nothing runs with half of the pillar. Files that sources read or run are refused
// if an unprivileged user can change them.
package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Source is one item of ext_pillar: the name of a source, and its argument.
type Source struct {
	Name     string
	Argument any
}

// Files are the files of the host that sources read.
type Files interface {
	Stat(path string) (host.Info, error)
	Lstat(path string) (host.Info, error)
	ReadDir(path string) ([]string, error)
	// ReadFile refuses a file that an unprivileged user can change.
	ReadFile(path string) ([]byte, error)
	// CheckTrusted returns the error with which ReadFile would refuse a file, for a file that a command runs or reads.
	CheckTrusted(path string) error
}

// World holds the data and files that sources use.
type World struct {
	ID      string     // of the host
	Grains  *value.Map // of the host
	Options *value.Map // of the minion
	Pillar  *value.Map // the data so far
	Dirs    []string   // directories of pillar files, for relative paths
	Files   Files
	Host    *host.Host // runs git
	Buckets Buckets    // nil if there is no access to buckets
	// Secret receives passwords and keys, which no output may have.
	Secret func(secrets ...string)
	// Compile compiles the pillar in an environment of other files than the pillar's own.
	Compile func(ctx context.Context, files roots.Files, env roots.Env) (*value.Map, error)
	// Call calls a function of the agent.
	Call func(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
	// Render renders a file that is a Jinja template; its includes are files of dir.
	Render func(ctx context.Context, dir, file, text string, vars *value.Map) (string, error)
	// Member reports whether the host is in a nodegroup.
	Member func(nodegroup string) (bool, error)
}

// Parse reads the option ext_pillar.
func Parse(option any) ([]Source, error) {
	if !value.Truth(option) {
		return nil, nil
	}
	list, ok := option.(*value.List)
	if !ok {
		return nil, diag.External.Hint(fmt.Errorf("ext_pillar is a %s, and a list was expected", value.TypeName(option)),
			itemHint)
	}
	var all []Source
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			return nil,
				diag.External.Hint(fmt.Errorf("an item of ext_pillar is a %s, and a mapping was expected", value.TypeName(item)),
					itemHint)
		}
		for name, argument := range m.All() {
			all = append(all, Source{value.Str(name), argument})
		}
	}
	return all, nil
}

const itemHint = "write each source as `- NAME: ARGUMENT`"

// Failed is the failure of one of the agent's own sources. The host's configuration names the source and its inputs, so
// no release is at fault.
type Failed struct {
	Source string // its name
	Err    error
}

// Error names the source.
func (f *Failed) Error() string { return "ext_pillar " + f.Source + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Failed) Unwrap() error { return f.Err }

// Data returns the data of a source; nil for none. An error is a *Failed, which wraps the error of ctx if ctx is done.
func (w World) Data(ctx context.Context, s Source) (any, error) {
	data, err := w.data(ctx, s)
	if err == nil {
		return data, nil
	}
	if over := ctx.Err(); over != nil { // a command or request was cancelled
		err = &stopped{err, over}
	}
	return nil, &Failed{Source: s.Name, Err: err}
}

// stopped is the error of a source whose context ended. Its text ends with that of the context's error, which it has
// once.
type stopped struct{ err, over error }

func (s *stopped) Error() string {
	over := s.over.Error()
	during := strings.TrimSuffix(strings.TrimSuffix(s.err.Error(), over), ": ")
	return strings.TrimPrefix(during+": "+over, ": ")
}

// Unwrap returns the error of the source and that of the context.
func (s *stopped) Unwrap() []error { return []error{s.err, s.over} }

func (w World) data(ctx context.Context, s Source) (any, error) {
	switch s.Name {
	case "cmd_yaml", "cmd_json":
		return w.printed(ctx, s)
	case "file_tree":
		return w.fileTree(s.Argument)
	case "stack":
		return w.stack(ctx, s.Argument)
	case "http_json", "http_yaml":
		return w.page(ctx, s)
	case "vault":
		return w.vault(ctx, s.Argument)
	case "git":
		return w.git(ctx, s.Argument)
	case "s3":
		return w.s3(ctx, s.Argument)
	}
	return nil, diag.External.Hint(errors.New("there is no such source of pillar data"), "%s", insteadOf(s.Name))
}

// hide gives all texts of a value to Secret.
func (w World) hide(v any) {
	switch v := v.(type) {
	case string:
		w.Secret(v)
	case *value.Map:
		for _, item := range v.All() {
			w.hide(item)
		}
	case *value.List:
		for _, item := range v.Items {
			w.hide(item)
		}
	}
}

// insteadOf returns the alternative to a source that is not supported.
func insteadOf(name string) string {
	switch name {
	case "consul", "consul_pillar", "etcd_pillar", "redis", "mongo":
		return "write `- cmd_json: COMMAND` with a command that prints its data as JSON, or `http_json`"
	}
	return "write it as a module " + name + ".py in _pillar of the state tree, or take it out of the option"
}

// parameters reads the argument of a source as Python would pass it: a mapping by name, a list by position, anything
// else as the first parameter. An unknown parameter is an error.
func parameters(argument any, names ...string) (*value.Map, error) {
	given := value.NewMap()
	switch a := argument.(type) {
	case *value.Map:
		given = a
	case *value.List:
		for i, item := range a.Items {
			if i >= len(names) {
				return nil, fmt.Errorf("it takes %d arguments, and %d are given", len(names), a.Len())
			}
			given.Set(names[i], item)
		}
	default:
		given.Set(names[0], a)
	}
	for key := range given.All() {
		if name := value.Str(key); !slices.Contains(names, name) {
			return nil, diag.External.Hint(fmt.Errorf("it has no argument %s", name), "%s", diag.DidYouMean(name, names))
		}
	}
	return given, nil
}
